"""How CybORG's games keep an order, judged from the true states that workers carry."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cagepool import make_vec
from cagepool.cyborg import CybORGEnv
from cagepool.cyborg.engine import CybORGEngine
from cagepool.evaluate.defenders import scripted_defender
from cagepool.evaluate.rollout import Trial
from cagepool.evaluate.statistics import tally
from cagepool.sim import COUNTERS
from cagepool.sim.compliance import Judge
from cagepool.sim.names import action_index
from tests.sim.test_compliance import FIXES
from tests.sim.test_compliance import Judge as SlowJudge

pytestmark = pytest.mark.parity

ORDER = "user>op_host>enterprise>op_server>defender"
RULES = list(product(["true", "observed"], ["host", "seed"]))
GAMES, STEPS = 2, 40


def meander() -> CybORGEnv:
    return CybORGEnv(red="RedMeanderAgent", max_steps=STEPS)


def test_a_workers_true_state_is_judged_as_specified() -> None:
    fast = [Judge(GAMES, ORDER, knowledge=k, definition=d, alignment=30.0) for k, d in RULES]
    slow = [[SlowJudge(ORDER, k, d) for _ in range(GAMES)] for k, d in RULES]
    rng = np.random.default_rng(3)
    with make_vec(GAMES, env=meander, backend="workers", workers=2, true_state="every") as envs:
        envs.reset(seed=1)
        for _ in range(STEPS):
            played = [str(rng.choice(["Sleep", *FIXES])) for _ in range(GAMES)]
            chosen = np.array([action_index(name) for name in played])
            seen: Any = SimpleNamespace(true_state=envs.true_state)
            for judge, others in zip(fast, slow, strict=True):
                judge.see(envs.true_state, chosen)
                for game, other in enumerate(others):
                    other.see(seen, game, played[game])
            envs.step(chosen)
    for judge, others in zip(fast, slow, strict=True):
        expected = [[other.counts[name] for name in COUNTERS] for other in others]
        assert judge.counters.tolist() == expected
        assert judge.counters[:, COUNTERS.index("threat_steps")].all()


def test_an_evaluation_in_cyborg_tells_how_the_order_was_kept() -> None:
    engine = CybORGEngine()
    trial = Trial(episodes=2, max_steps=20, order=ORDER, edition=engine.edition)
    kept = tally(scripted_defender("restore-rotation"), trial, "RedMeanderAgent", engine)
    found = kept.compliance()
    assert found is not None
    assert found["decisions"]
