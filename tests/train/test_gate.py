"""When training to an order ends, and who can't pass."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict

from cagepool import runs
from cagepool.evaluate.resolve import resolve_policy
from cagepool.evaluate.rollout import Trial
from cagepool.evaluate.statistics import play_and_count
from cagepool.search.permutations import restricted_order
from cagepool.sim import Batch, BatchConfig, orders
from cagepool.sim.compliance import compliance_summary
from cagepool.sim.names import action_index
from cagepool.train import runner
from cagepool.train.appraisal import SEED
from cagepool.train.config import OrderConfig, TrainConfig
from cagepool.train.early_stopping import Gate, passes
from cagepool.train.logging import Row
from cagepool.types import Int64s

GAMES = 20  # to each order
REDS = ("B_lineAgent", "RedMeanderAgent")
TAKEN = ("enterprise", "op_server", "user")
SLEEP = action_index("Sleep")
QUICK = {"n_envs": 10, "max_steps": 20, "update_steps": 20, "n_eval_episodes": 2, "n_evals": 0,
         "order_eval_episodes": 4, "hidden": (8,), "red_agent": "b_line"}  # fmt: skip


class Silent:
    def updated(self, row: Row) -> None: ...

    def checked(self, row: Row, check: object, *, is_best: bool) -> None: ...


def trained(folder: Path, **settings: Any) -> runs.Run:
    config = TrainConfig.from_flat(**{**QUICK, **settings})
    run = runs.create(folder, config.as_dict(), "0")
    assert runner.train(run, Silent(), lambda: False)
    return run


def counters_of(red: str, fix: str, steps: range, definition: Any = "host") -> Int64s:
    """Counters, (order, game, counter), of games in which blue fixes at these steps alone."""
    followed = [order for order in orders.ALL_ORDERS for _ in range(GAMES)]
    config = BatchConfig(red=red, order=followed, definition=definition, autoreset="disabled")
    batch = Batch(len(followed), config)
    batch.reset(np.tile(np.arange(GAMES, dtype=np.uint64), len(orders.ALL_ORDERS)))
    for step in range(100):
        action = action_index(fix) if step in steps else SLEEP
        batch.step(np.full(len(followed), action))
    return batch.counters.reshape(len(orders.ALL_ORDERS), GAMES, -1).astype(np.int64)


def passing(counters: Int64s) -> list[str]:
    summaries = (compliance_summary(of_order, "host") for of_order in counters)
    verdicts = (passes(one.compliance, one.decisions, OrderConfig()) for one in summaries)
    return [order for order, passed in zip(orders.ALL_ORDERS, verdicts, strict=True) if passed]


@pytest.mark.parametrize("red", REDS)
def test_who_never_fixes_does_not_pass_and_has_no_compliance(red: str) -> None:
    counters = counters_of(red, "Sleep", range(0))
    assert passing(counters) == []
    assert all(np.isnan(compliance_summary(one, "host").compliance) for one in counters)


@pytest.mark.parametrize("red", REDS)
@pytest.mark.parametrize("step", [0, 15, 40, 90])
@pytest.mark.parametrize("host", ["User1", "Enterprise2", "Op_Server0"])
def test_who_fixes_once_does_not_pass(red: str, step: int, host: str) -> None:
    assert passing(counters_of(red, f"Restore {host}", range(step, step + 1))) == []


def test_fixing_once_at_the_right_moment_keeps_the_order_and_yet_does_not_pass() -> None:
    counters = counters_of("B_lineAgent", "Restore Enterprise2", range(15, 16))
    first = orders.order_number("enterprise_focus")
    summary = compliance_summary(counters[first], "host")
    assert (summary.compliance, summary.decisions) == (1.0, 1.0)


@pytest.mark.parametrize("red", REDS)
def test_who_restores_the_foothold_for_ever_does_not_pass(red: str) -> None:
    counters = counters_of(red, "Restore User0", range(100))
    assert passing(counters) == []
    assert {compliance_summary(one, "host").compliance for one in counters} == {0.0}


@pytest.mark.parametrize("red", REDS)
def test_by_the_older_definition_restoring_the_foothold_is_perfect_if_users_come_first(
    red: str,
) -> None:
    counters = counters_of(red, "Restore User0", range(100), "seed")
    for order, one in zip(orders.ALL_ORDERS, counters, strict=True):
        compliance = compliance_summary(one, "seed").compliance
        # Of what comes before the users, red must never hold a host.
        assert (compliance == 1.0) == restricted_order(order, TAKEN).startswith("user"), order


def judged(gate: Gate, shares: list[float], **config: Any) -> list[bool]:
    rows = ({"return_mean": -1.0, "compliance": share, "decisions": 5.0} for share in shares)
    return [gate.judge(row, OrderConfig(**config)) for row in rows]


def test_a_gate_ends_a_run_that_passes() -> None:
    gate = Gate()
    assert judged(gate, [0.5, 0.949, 0.95]) == [False, False, True]
    assert gate.outcome == "passed"


def test_a_gate_ends_a_run_after_so_many_updates_without_a_rise() -> None:
    gate = Gate()
    assert judged(gate, [0.5, 0.505, 0.51, 0.515, 0.519], patience=2) == [False] * 4 + [True]
    assert gate.outcome == "stalled"
    assert "above 0.510" in gate.reason


def test_a_gate_ends_a_run_in_which_nothing_is_ever_decided() -> None:
    gate = Gate()
    assert judged(gate, [float("nan")] * 3, patience=3) == [False, False, True]
    assert "undefined" in gate.reason


def test_updates_in_which_no_episode_ended_do_not_wear_out_patience() -> None:
    gate = Gate()
    empty = {"return_mean": float("nan")}
    assert not any(gate.judge(empty, OrderConfig(patience=1)) for _ in range(5))


def test_a_run_says_why_it_ended(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", order="reverse", total_episodes=60, patience=3)
    outcome = json.loads((run.path / "workflow.json").read_text())
    state = run.checkpoint("last").state
    assert outcome["outcome"] == state["outcome"] == "stalled"
    assert outcome["reason"] == state["reason"]
    assert run.metrics()["episodes"][-1] < 60


def test_a_run_that_has_ended_by_its_gate_stays_ended(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", order="reverse", total_episodes=60, patience=1)
    before = run.metrics()
    assert runner.train(run, Silent(), lambda: False)
    assert run.metrics() == before


def test_without_a_gate_all_episodes_are_played(tmp_path: Path) -> None:
    run = trained(
        tmp_path / "run", order="reverse", total_episodes=60, patience=1, early_stopping=False
    )
    assert run.metrics()["episodes"][-1] == 60
    assert run.checkpoint("last").state["outcome"] == "fixed"


def test_without_a_lambda_the_run_is_that_without_an_order(tmp_path: Path) -> None:
    settings = {"total_episodes": 60, "patience": 1, "alignment_lambda": 0.0}
    plain = trained(tmp_path / "plain", **settings)
    ordered = trained(tmp_path / "ordered", order="reverse", **settings)
    weights, others = (run.checkpoint("last").arrays for run in (plain, ordered))
    games = {"collector.games", "collector.game_sizes"}  # these carry the order
    assert {*weights} == {*others}
    assert all((weights[name] == others[name]).all() for name in {*weights} - games)
    columns, of_ordered = plain.metrics(), ordered.metrics()
    timed = [name for name in columns if "seconds" in name]
    workflow = ["alignment_mean", "compliance", "coverage", "decisions", "fixes", "wasted_fixes"]
    for name in {*columns} - {*timed, *workflow}:
        np.testing.assert_array_equal(columns[name], of_ordered[name], name)


def test_a_run_starts_from_the_policy_and_the_optimiser_of_another(tmp_path: Path) -> None:
    first = trained(tmp_path / "first", order="reverse", total_episodes=30, early_stopping=False)
    start = str(first.path.resolve())
    second = trained(
        tmp_path / "second", order="balanced", total_episodes=10, start_from=start,
        early_stopping=False, learning_rate=1e-12, learning_rate_end=1e-12,
    )  # fmt: skip
    old, new = (run.checkpoint("last").arrays for run in (first, second))
    np.testing.assert_allclose(new["actor.0.weight"], old["actor.0.weight"], atol=1e-7)
    assert new["adam.step"][0] > old["adam.step"][0] > 0


def test_a_run_does_not_start_from_a_policy_of_another_size(tmp_path: Path) -> None:
    first = trained(tmp_path / "first", total_episodes=10)
    with pytest.raises(ValueError, match="start_from must have such a policy"):
        trained(tmp_path / "second", total_episodes=10, start_from=str(first.path), hidden=(9,))


@pytest.mark.parametrize("definition", ["host", "seed"])
def test_workflow_json_and_an_evaluation_of_the_same_games_give_the_same_compliance(
    tmp_path: Path, definition: Any
) -> None:
    settings = {"order": "user_priority", "definition": definition, "total_episodes": 10}
    run = trained(tmp_path / "run", **settings, max_steps=60)
    written = json.loads((run.path / "workflow.json").read_text())
    trial = Trial(
        episodes=written["episodes"], max_steps=60, seed=SEED, order=written["order"],
        definition=definition,
    )  # fmt: skip
    evaluated = play_and_count(
        resolve_policy(str(run.path), "last").defender, trial, "B_lineAgent"
    ).compliance()
    assert evaluated is not None
    assert evaluated.decisions
    shares = asdict(evaluated)
    assert shares == {name: written[name] for name in shares}


def test_a_universal_run_draws_orders_and_resumes_to_the_same_numbers(tmp_path: Path) -> None:
    settings = {"universal": True, "order_input": True, "total_episodes": 60, "max_steps": 20}
    whole = trained(tmp_path / "whole", **settings)
    config = TrainConfig.from_flat(**{**QUICK, **settings})
    parts = runs.create(tmp_path / "parts", config.as_dict(), "0")
    stops = iter([False, True])
    assert not runner.train(parts, Silent(), lambda: next(stops))
    assert runner.train(parts, Silent(), lambda: False)
    one, other = (run.checkpoint("last").arrays for run in (whole, parts))
    assert all((one[name] == other[name]).all() for name in one)
    memories = one["collector.memories"]
    assert len({row.tobytes() for row in memories}) > 1


def test_a_run_in_workers_keeps_the_same_account_of_its_order(tmp_path: Path) -> None:
    settings = {"order": "reverse", "total_episodes": 20, "early_stopping": False}
    native = trained(tmp_path / "native", **settings).metrics()
    apart = trained(tmp_path / "apart", **settings, backend="workers").metrics()
    for name in ("alignment_mean", "compliance", "coverage", "decisions", "wasted_fixes"):
        assert apart[name] == native[name], name
