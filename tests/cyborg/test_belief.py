"""The exact belief beside CybORG's own games, which it must explain; they need CybORG."""

import numpy as np
import pytest

from cagepool import _core
from cagepool.cyborg import CybORGEnv
from cagepool.sim import BeliefConfig, BeliefFilter
from cagepool.sim.names import OFFICIAL_REDS

GAMES, STEPS = 4, 60
ROUNDING = 1e-9  # of sums of doubles


@pytest.mark.parity
@pytest.mark.parametrize("green", [False, True], ids=["green off", "green on"])
@pytest.mark.parametrize("red", OFFICIAL_REDS)
def test_a_belief_never_rules_out_what_happens_in_cyborg(red: str, green: bool) -> None:
    env = CybORGEnv(red=red, green=green, max_steps=STEPS)
    belief = BeliefFilter(1, BeliefConfig(edition=env.edition, green=green, capacity=500))
    rng = np.random.default_rng(2)
    for game in range(GAMES):
        env.reset(seed=game)
        belief.reset()
        for _ in range(STEPS):
            action = int(rng.integers(_core.ACTION_COUNT)) if rng.random() < 0.5 else 0
            observation = env.step(action)[0]
            belief.update(np.array([action]), observation[np.newaxis].astype(np.float32))
            said, state = belief.probabilities[0], env.true_state()
            assert said["reds"][OFFICIAL_REDS.index(red)] > 0
            privileged = state["privileged"].reshape(-1) > 0
            assert (said["privileged"][privileged] > 0).all()
            assert (said["privileged"][~privileged] < 1 - ROUNDING).all()
    assert belief.posterior[0, OFFICIAL_REDS.index(red)] == pytest.approx(1)
