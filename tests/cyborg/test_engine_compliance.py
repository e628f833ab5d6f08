"""Compliance of CybORG's games, counted from the true states of worker environments."""

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
from cagepool.sim.compliance import ComplianceTracker
from cagepool.sim.names import action_index
from tests.sim.test_compliance import FIXES, RULES, ReferenceCounter

pytestmark = pytest.mark.parity

ORDER = "user>op_host>enterprise>op_server>defender"
GAMES, STEPS = 2, 40


def meander() -> CybORGEnv:
    return CybORGEnv(red="RedMeanderAgent", max_steps=STEPS)


def test_compliance_is_counted_as_specified_from_a_workers_true_state() -> None:
    trackers = [
        ComplianceTracker(GAMES, ORDER, knowledge=knowledge, definition=definition, alignment=30.0)
        for knowledge, definition in RULES
    ]
    references = [[ReferenceCounter(ORDER, *rule) for _ in range(GAMES)] for rule in RULES]
    rng = np.random.default_rng(3)
    with make_vec(GAMES, env=meander, backend="workers", workers=2, true_state="every") as envs:
        envs.reset(seed=1)
        for _ in range(STEPS):
            played = [str(rng.choice(["Sleep", *FIXES])) for _ in range(GAMES)]
            chosen = np.array([action_index(name) for name in played])
            seen: Any = SimpleNamespace(true_state=envs.true_state)
            for tracker, of_games in zip(trackers, references, strict=True):
                tracker.update(envs.true_state, chosen)
                for game, reference in enumerate(of_games):
                    reference.update(seen, game, played[game])
            envs.step(chosen)
    for tracker, of_games in zip(trackers, references, strict=True):
        expected = [[reference.counts[name] for name in COUNTERS] for reference in of_games]
        assert tracker.counters.tolist() == expected
        assert tracker.counters[:, COUNTERS.index("threat_steps")].all()


def test_an_evaluation_in_cyborg_has_compliance() -> None:
    engine = CybORGEngine()
    trial = Trial(episodes=2, max_steps=20, order=ORDER, edition=engine.edition)
    counted = tally(scripted_defender("restore-rotation"), trial, "RedMeanderAgent", engine)
    found = counted.compliance()
    assert found is not None
    assert found["decisions"]
