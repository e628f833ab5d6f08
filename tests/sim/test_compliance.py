"""Compliance and alignment reward, against a slow reading of docs/workflow.md, 1 to 3."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cagepool import make_vec
from cagepool.sim import COUNTERS, Batch, BatchConfig, compliance
from cagepool.sim.compliance import ComplianceTracker, compliance_summary, episode_compliance
from cagepool.sim.names import ACTIONS, HOSTS, action_index
from tests.scenarios.files import sample
from tests.sim.games import SEEDS, int64s, play_actions, play_step, start_batch

TYPES = {
    "defender": ["Defender"],
    "enterprise": ["Enterprise0", "Enterprise1", "Enterprise2"],
    "op_server": ["Op_Server0"],
    "op_host": ["Op_Host0", "Op_Host1", "Op_Host2"],
    "user": ["User1", "User2", "User3", "User4"],
}
RULES = list(product(["true", "observed"], ["host", "fix-type"]))
FIXES = [name for name in ACTIONS if name.startswith(("Remove", "Restore"))]
FIX_OR_SLEEP = np.array([0, *(action_index(name) for name in FIXES)])
ORDERS = st.permutations(list(TYPES)).map(">".join)
# Fixes are frequent, so that most games have decisions.
PLAYED = st.lists(
    st.sampled_from(["Sleep", "Sleep", "DecoyTomcat User1", *FIXES]), min_size=1, max_size=60
)


@dataclass
class ReferenceCounter:
    """Counts the decisions of one game, written in the words of the specification."""

    order: str
    knowledge: str
    definition: str
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0))

    @property
    def compliance(self) -> Fraction:
        decisions = self.counts["compliant"] + self.counts["violations"]
        return Fraction(self.counts["compliant"], decisions) if decisions else Fraction(0)

    def hosts_of(self, kind: str) -> list[str]:
        foothold = ["User0"] if kind == "user" and self.definition == "fix-type" else []
        return TYPES[kind] + foothold

    def threatened(self, batch: Batch, game: int) -> set[str]:
        column = {"true": "access", "observed": "compromised"}[self.knowledge]
        values = dict(zip(HOSTS, batch.true_state[column][game], strict=True))
        if self.definition == "host":
            del values["User0"]
        return {host for host, value in values.items() if value}

    def update(self, batch: Batch, game: int, action: str) -> None:
        """Count an action by the state before it is played."""
        threatened = self.threatened(batch, game)
        types = [kind for kind in self.order.split(">") if threatened & {*self.hosts_of(kind)}]
        self.counts["threat_steps"] += bool(types)
        if action not in FIXES:
            return
        target = action.split()[1]
        self.counts["fixes"] += 1
        in_top_type = bool(types) and target in self.hosts_of(types[0])
        if self.definition == "fix-type":
            compliant = in_top_type or not types
        else:
            compliant = in_top_type and target in threatened
        self.counts["compliant"] += compliant
        self.counts["violations"] += bool(types) and not compliant
        on_foothold = target == "User0" and self.definition == "host"
        self.counts["wasted"] += not types or on_foothold


@given(
    seed=SEEDS,
    game=PLAYED,
    written=st.tuples(ORDERS, ORDERS, ORDERS),
    alignment=st.sampled_from([0.0, 0.7, 30.0]),
)
@pytest.mark.parametrize("rule", RULES, ids="-".join)
def test_counters_and_alignment_are_as_specified(
    seed: int, game: list[str], written: tuple[str, ...], alignment: float, rule: tuple[str, str]
) -> None:
    batch = start_batch(
        3,
        seed,
        red=["meander", "b_line", "meander"],
        order=written,
        alignment=alignment,
        knowledge=rule[0],
        definition=rule[1],
    )
    references = [ReferenceCounter(order, *rule) for order in written]
    asleep = ["Sleep"] * (seed % 40)  # let red get somewhere
    for action in asleep + game:
        before = [reference.compliance for reference in references]
        for number, reference in enumerate(references):
            reference.update(batch, number, action)
        play_step(batch, action)
        for number, reference in enumerate(references):
            assert dict(zip(COUNTERS, batch.counters[number], strict=True)) == reference.counts
            expected = float(alignment * (reference.compliance - before[number]))
            # The core keeps lambda * C on a grid of 2^-44 of lambda, so that sums are exact.
            assert batch.alignment[number] == pytest.approx(expected, abs=alignment * 2**-43)


@given(
    seed=SEEDS,
    policy=st.integers(0, 2**32),
    alignment=st.floats(1e-3, 1e6),
    definition=st.sampled_from(["host", "fix-type"]),
)
def test_the_alignment_rewards_of_an_episode_add_up_to_the_bit(
    seed: int, policy: int, alignment: float, definition: str
) -> None:
    batch = start_batch(
        4,
        seed,
        red="mix",
        order=["critical_first", "reverse", "balanced", "user_priority"],
        alignment=alignment,
        definition=definition,
        max_steps=100,
    )
    rng = np.random.default_rng(policy)
    fixes = int64s(action_index(name) for name in FIXES)
    sums, exact = np.zeros(4), [Fraction(0)] * 4
    for _ in range(100):
        batch.step(rng.choice(fixes, 4))
        sums += batch.alignment
        exact = [old + Fraction(new) for old, new in zip(exact, batch.alignment, strict=True)]
    assert [Fraction(value) for value in sums] == exact
    for value, (compliant, violations, *_) in zip(sums, batch.counters, strict=True):
        last = alignment * compliant / max(compliant + violations, 1)
        assert abs(value - last) <= alignment * 2**-44


def test_alignment_is_nothing_without_a_lambda() -> None:
    batch = start_batch(2, red="meander", order="reverse")
    for _ in range(50):
        play_step(batch, "Restore User1")
        assert not batch.alignment.any()
    assert batch.counters[:, COUNTERS.index("fixes")].tolist() == [50, 50]


def test_without_an_order_nothing_is_counted() -> None:
    batch = start_batch(2)
    assert (len(batch.counters), len(batch.episode_counters), len(batch.alignment)) == (0, 0, 0)


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_counters_begin_anew_with_the_episode_and_the_old_are_kept(autoreset: str) -> None:
    batch = start_batch(1, red="sleep", order="reverse", max_steps=3, autoreset=autoreset)
    for _ in range(3):
        play_step(batch, "Restore User1")
    if autoreset == "next_step":
        assert batch.counters.tolist() == batch.episode_counters.tolist()
        play_step(batch, "Restore User1")  # starts the new episode and is not counted
    assert batch.counters.tolist() == [[0, 0, 0, 0, 0]]
    assert batch.episode_counters.tolist() == [[0, 0, 3, 3, 0]]


def test_restoring_the_foothold_while_all_is_well_is_waste_alone() -> None:
    batch = start_batch(1, red="sleep", order="reverse")
    for _ in range(10):
        play_step(batch, "Restore User0")
    counts = dict(zip(COUNTERS, batch.counters[0], strict=True))
    assert counts == {"compliant": 0, "violations": 0, "wasted": 10, "fixes": 10, "threat_steps": 0}


@pytest.mark.parametrize("order", [*compliance.NAMED_ORDERS])
def test_named_orders_are_orders(order: str) -> None:
    assert sorted(compliance.parse_order(order)) == sorted(TYPES)


def test_there_are_120_orders_each_with_its_own_number() -> None:
    assert set(compliance.ALL_ORDERS) == {">".join(order) for order in permutations(TYPES)}
    assert [compliance.order_number(order) for order in compliance.ALL_ORDERS] == list(range(120))


def test_a_copied_game_takes_its_order_along() -> None:
    batch = start_batch(2, order=["reverse", "critical_first"], max_steps=60)
    play_actions(batch, [0] * 10)
    batch.copy(int64s([0]), int64s([1]))
    for action in range(15, 28):
        batch.step(int64s([action, action]))
    assert batch.counters[0].tolist() == batch.counters[1].tolist()
    assert batch.counters[0].any()


@given(
    seed=SEEDS, order=ORDERS, policy=st.integers(0, 2**32), weight=st.sampled_from([0.0, 0.7, 30])
)
@pytest.mark.parametrize("rule", RULES, ids="-".join)
def test_a_tracker_counts_and_rewards_as_the_core_does(
    seed: int, order: str, policy: int, weight: float, rule: tuple[str, str]
) -> None:
    knowledge, definition = rule
    batch = start_batch(
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
    tracker = ComplianceTracker(
        6, order, knowledge=knowledge, definition=definition, alignment=weight
    )
    rng = np.random.default_rng(policy)
    for _ in range(60):
        chosen = rng.choice(FIX_OR_SLEEP, 6)
        tracker.update(batch.true_state, chosen)
        batch.step(chosen)
        assert tracker.counters.tolist() == batch.counters.tolist()
        assert tracker.alignment.tolist() == batch.alignment.tolist()


def test_a_tracker_of_worker_environments_counts_as_the_core_does() -> None:
    game: Any = {"red": "RedMeanderAgent", "max_steps": 30, "autoreset": "same_step"}
    order = "reverse"
    tracker = ComplianceTracker(4, order, knowledge="true", definition="host", alignment=30.0)
    rng = np.random.default_rng(0)
    with (
        make_vec(4, backend="workers", workers=2, true_state="every", **game) as workers,
        make_vec(4, order=order, alignment=30.0, **game) as native,
    ):
        workers.reset(seed=5)
        native.reset(seed=5)
        for _ in range(75):
            chosen = rng.choice(FIX_OR_SLEEP, 4)
            tracker.update(workers.true_state, chosen)
            workers.step(chosen)
            *_, truncations, _ = native.step(chosen)
            assert tracker.alignment.tolist() == native.alignment.tolist()
            ended = np.flatnonzero(truncations)
            counters = tracker.end_episodes(ended)
            assert counters.tolist() == native.batch.episode_counters[ended].tolist()
            assert tracker.counters.tolist() == native.counters.tolist()
    assert tracker.counters.any()


# Rows of COUNTERS: compliant, violations, wasted, fixes, threat_steps.
EPISODES = np.array([[0, 0, 0, 0, 9], [3, 1, 0, 4, 9], [1, 0, 0, 1, 2]], np.int32)


def test_compliance_is_the_share_of_all_decisions() -> None:
    summary = compliance_summary(EPISODES, "host")
    assert summary.compliance == 4 / 5
    assert summary.coverage == 5 / 20
    assert summary.decisions == 5 / 3
    assert (summary.fixes, summary.wasted_fixes) == (5, 0)


def test_older_compliance_is_the_mean_of_episodes_and_half_without_a_fix() -> None:
    assert compliance_summary(EPISODES, "fix-type").compliance == (0.5 + 0.75 + 1.0) / 3


def test_by_the_older_definition_wasted_fixes_comply_and_cover_no_threat() -> None:
    # 2 fixes while nothing was threatened, then 1 of 4 steps with a threat was used for a fix.
    summary = compliance_summary(np.array([[2, 1, 2, 3, 4]]), "fix-type")
    assert (summary.compliance, summary.coverage) == (2 / 3, 1 / 4)
    assert summary.as_dict()["wasted_fixes"] == 2


def test_compliance_without_a_decision_is_undefined() -> None:
    summary = compliance_summary(np.array([[0, 0, 2, 2, 0]]), "host")
    assert math.isnan(summary.compliance)
    assert math.isnan(summary.coverage)
    assert summary.as_dict() == {
        "compliance": None,
        "coverage": None,
        "decisions": 0,
        "wasted_fixes": 2,
    }


def test_the_alignment_of_an_episode_without_a_decision_is_0() -> None:
    counters = np.array([[3, 1, 0, 4, 9], [0, 0, 2, 2, 0], [0, 2, 0, 2, 5]])
    assert episode_compliance(counters, undefined=0.0).tolist() == [0.75, 0.0, 0.0]


@pytest.mark.parametrize("knowledge", ["true", "observed"])
@pytest.mark.parametrize("name", ["tiny", "linear4", "blind_spots", "other_images", "wide40"])
def test_a_tracker_counts_as_the_core_does_on_other_networks(name: str, knowledge: Any) -> None:
    scenario = sample(name)
    order = "op_server,enterprise,op_host,user,defender"
    batch = Batch(
        30,
        BatchConfig(
            scenario=scenario, order=order, alignment=30.0, knowledge=knowledge, red="meander"
        ),
    )
    batch.reset(np.arange(30, dtype=np.uint64))
    tracker = ComplianceTracker(
        30, order, knowledge=knowledge, definition="host", alignment=30.0, scenario=scenario
    )
    rng = np.random.default_rng(0)
    fixes = [index for index, action in enumerate(scenario.actions) if action.startswith("Re")]
    for _ in range(60):
        actions = rng.choice(fixes, 30)
        tracker.update(batch.true_state, actions)
        batch.step(actions)
        np.testing.assert_array_equal(tracker.counters, batch.counters)
        np.testing.assert_array_equal(tracker.alignment, batch.alignment)
    assert tracker.counters.any(axis=0).all()
