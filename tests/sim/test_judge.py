"""The judge outside the core counts and rewards as the core does."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cagepool import make_vec
from cagepool.sim.compliance import Judge
from cagepool.sim.names import action_index
from tests.sim.games import SEEDS, started
from tests.sim.test_compliance import FIXES, ORDERS

RULES = list(product(["true", "observed"], ["host", "seed"]))
CHOICES = np.array([0, *(action_index(name) for name in FIXES)])


@given(seed=SEEDS, order=ORDERS, luck=st.integers(0, 2**32), weight=st.sampled_from([0.0, 0.7, 30]))
@pytest.mark.parametrize("rule", RULES, ids="-".join)
def test_counters_and_alignment_are_those_of_the_core(
    seed: int, order: str, luck: int, weight: float, rule: tuple[str, str]
) -> None:
    knowledge, definition = rule
    batch = started(
        6,
        seed,
        red="mix",
        order=order,
        alignment=weight,
        knowledge=knowledge,
        definition=definition,
        max_steps=60,
        autoreset="disabled",
    )
    judge = Judge(6, order, knowledge=knowledge, definition=definition, alignment=weight)
    rng = np.random.default_rng(luck)
    for _ in range(60):
        chosen = rng.choice(CHOICES, 6)
        judge.see(batch.true_state, chosen)
        batch.step(chosen)
        assert judge.counters.tolist() == batch.counters.tolist()
        assert judge.alignment.tolist() == batch.alignment.tolist()


def test_a_judge_of_worker_environments_sees_what_the_core_sees() -> None:
    game: Any = {"red": "RedMeanderAgent", "max_steps": 30, "autoreset": "same_step"}
    order = "reverse"
    judge = Judge(4, order, knowledge="true", definition="host", alignment=30.0)
    rng = np.random.default_rng(0)
    with (
        make_vec(4, backend="workers", workers=2, true_state="every", **game) as apart,
        make_vec(4, order=order, alignment=30.0, **game) as native,
    ):
        apart.reset(seed=5)
        native.reset(seed=5)
        for _ in range(75):
            chosen = rng.choice(CHOICES, 4)
            judge.see(apart.true_state, chosen)
            apart.step(chosen)
            *_, truncations, _ = native.step(chosen)
            assert judge.alignment.tolist() == native.alignment.tolist()
            ended = np.flatnonzero(truncations)
            kept = judge.take(ended)
            assert kept.tolist() == native.batch.episode_counters[ended].tolist()
            assert judge.counters.tolist() == native.counters.tolist()
    assert judge.counters.any()
