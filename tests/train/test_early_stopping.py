"""Early stopping of a training with an order, and policies that must not pass."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict

from cagepool import runs
from cagepool.evaluate.rollout import Trial
from cagepool.evaluate.statistics import play_and_count
from cagepool.policy.load import load
from cagepool.search.strategy import restricted_order
from cagepool.sim import Batch, BatchConfig, compliance
from cagepool.sim.compliance import compliance_summary
from cagepool.sim.names import action_index
from cagepool.train import runner
from cagepool.train.config import OrderConfig, TrainConfig
from cagepool.train.evaluation import ORDER_SEED, EarlyStopping, passes
from cagepool.types import Int64s
from tests.train.null_listener import NullListener, never
from tests.train.short_runs import SHORT, create_run

GAMES = 20  # per order
REDS = ("B_lineAgent", "RedMeanderAgent")
COMPROMISED = ("enterprise", "op_server", "user")
SLEEP = action_index("Sleep")
QUICK = {"n_envs": 10, "max_steps": 20, "update_steps": 20, "n_eval_episodes": 2, "n_evals": 0,
         "order_eval_episodes": 4, "hidden": (8,), "red_agent": "b_line"}  # fmt: skip


def train_run(folder: Path, **settings: Any) -> runs.Run:
    config = TrainConfig.from_flat(**{**QUICK, **settings})
    run = runs.create(folder, config.as_dict(), "0")
    assert runner.train(run, NullListener(), never)
    return run


def play_fixes(red: str, fix: str, steps: range, definition: Any = "host") -> Int64s:
    """Counters, (order, game, counter), of games in which blue fixes only in these steps."""
    order_per_game = [order for order in compliance.ALL_ORDERS for _ in range(GAMES)]
    config = BatchConfig(red=red, order=order_per_game, definition=definition, autoreset="disabled")
    batch = Batch(len(order_per_game), config)
    batch.reset(np.tile(np.arange(GAMES, dtype=np.uint64), len(compliance.ALL_ORDERS)))
    for step in range(100):
        action = action_index(fix) if step in steps else SLEEP
        batch.step(np.full(len(order_per_game), action))
    return batch.counters.reshape(len(compliance.ALL_ORDERS), GAMES, -1).astype(np.int64)


def passing_orders(counters: Int64s) -> list[str]:
    summaries = (compliance_summary(counts, "host") for counts in counters)
    verdicts = (
        passes(summary.compliance, summary.decisions, OrderConfig()) for summary in summaries
    )
    return [order for order, passed in zip(compliance.ALL_ORDERS, verdicts, strict=True) if passed]


@pytest.mark.parametrize("red", REDS)
def test_a_policy_without_fixes_does_not_pass_and_its_compliance_is_undefined(red: str) -> None:
    counters = play_fixes(red, "Sleep", range(0))
    assert passing_orders(counters) == []
    assert all(np.isnan(compliance_summary(counts, "host").compliance) for counts in counters)


@pytest.mark.parametrize("red", REDS)
@pytest.mark.parametrize("step", [0, 15, 40, 90])
@pytest.mark.parametrize("host", ["User1", "Enterprise2", "Op_Server0"])
def test_a_policy_that_fixes_once_does_not_pass(red: str, step: int, host: str) -> None:
    assert passing_orders(play_fixes(red, f"Restore {host}", range(step, step + 1))) == []


def test_one_fix_at_the_right_moment_has_compliance_1_with_1_decision() -> None:
    counters = play_fixes("B_lineAgent", "Restore Enterprise2", range(15, 16))
    first = compliance.order_number("enterprise_focus")
    summary = compliance_summary(counters[first], "host")
    assert (summary.compliance, summary.decisions) == (1.0, 1.0)


@pytest.mark.parametrize("red", REDS)
def test_a_policy_that_only_restores_the_foothold_does_not_pass(red: str) -> None:
    counters = play_fixes(red, "Restore User0", range(100))
    assert passing_orders(counters) == []
    assert {compliance_summary(counts, "host").compliance for counts in counters} == {0.0}


@pytest.mark.parametrize("red", REDS)
def test_by_the_older_definition_restoring_the_foothold_complies_if_users_come_first(
    red: str,
) -> None:
    counters = play_fixes(red, "Restore User0", range(100), "fix-type")
    for order, counts in zip(compliance.ALL_ORDERS, counters, strict=True):
        share = compliance_summary(counts, "fix-type").compliance
        # Red must never compromise a host type that comes before the users.
        assert (share == 1.0) == restricted_order(order, COMPROMISED).startswith("user"), order


def update_all(stopping: EarlyStopping, compliance: list[float], **config: Any) -> list[bool]:
    rows = ({"return_mean": -1.0, "compliance": value, "decisions": 5.0} for value in compliance)
    return [stopping.update(row, OrderConfig(**config)) for row in rows]


def test_training_stops_when_compliance_passes() -> None:
    stopping = EarlyStopping()
    assert update_all(stopping, [0.5, 0.949, 0.95]) == [False, False, True]
    assert stopping.outcome == "passed"


def test_training_stops_after_patience_updates_without_a_rise() -> None:
    stopping = EarlyStopping()
    assert update_all(stopping, [0.5, 0.505, 0.51, 0.515, 0.519], patience=2) == [False] * 4 + [
        True
    ]
    assert stopping.outcome == "stalled"
    assert "above 0.510" in stopping.reason


def test_training_stops_if_compliance_stays_undefined() -> None:
    stopping = EarlyStopping()
    assert update_all(stopping, [float("nan")] * 3, patience=3) == [False, False, True]
    assert "undefined" in stopping.reason


def test_updates_without_a_finished_episode_do_not_count_towards_patience() -> None:
    stopping = EarlyStopping()
    no_episodes = {"return_mean": float("nan")}
    assert not any(stopping.update(no_episodes, OrderConfig(patience=1)) for _ in range(5))


def test_workflow_json_and_the_checkpoint_say_why_the_run_ended(tmp_path: Path) -> None:
    run = train_run(tmp_path / "run", order="reverse", total_episodes=60, patience=3)
    outcome = json.loads((run.path / "workflow.json").read_text())
    state = run.checkpoint("last").state
    assert outcome["outcome"] == state["outcome"] == "stalled"
    assert outcome["reason"] == state["reason"]
    assert run.metrics()["episodes"][-1] < 60


def test_a_run_that_stopped_early_is_not_trained_further(tmp_path: Path) -> None:
    run = train_run(tmp_path / "run", order="reverse", total_episodes=60, patience=1)
    before = run.metrics()
    assert runner.train(run, NullListener(), never)
    np.testing.assert_equal(run.metrics(), before)  # without reward function its column is NaN


def test_without_early_stopping_all_episodes_are_played(tmp_path: Path) -> None:
    run = train_run(
        tmp_path / "run", order="reverse", total_episodes=60, patience=1, early_stopping=False
    )
    assert run.metrics()["episodes"][-1] == 60
    assert run.checkpoint("last").state["outcome"] == "fixed"


def test_with_lambda_0_the_run_equals_one_without_an_order(tmp_path: Path) -> None:
    settings = {"total_episodes": 60, "patience": 1, "alignment_lambda": 0.0}
    plain = train_run(tmp_path / "plain", **settings)
    ordered = train_run(tmp_path / "ordered", order="reverse", **settings)
    weights, others = (run.checkpoint("last").arrays for run in (plain, ordered))
    games = {"collector.games", "collector.game_sizes"}  # they hold the order
    assert {*weights} == {*others}
    assert all((weights[name] == others[name]).all() for name in {*weights} - games)
    columns, ordered_columns = plain.metrics(), ordered.metrics()
    timed = [name for name in columns if "seconds" in name]
    workflow = ["alignment_mean", "compliance", "coverage", "decisions", "fixes", "wasted_fixes",
                "wasted_fixes_per_episode"]  # fmt: skip
    for name in {*columns} - {*timed, *workflow}:
        np.testing.assert_array_equal(columns[name], ordered_columns[name], name)


def test_a_run_starts_from_the_policy_and_the_optimizer_state_of_another(tmp_path: Path) -> None:
    first = train_run(tmp_path / "first", order="reverse", total_episodes=30, early_stopping=False)
    start = str(first.path.resolve())
    second = train_run(
        tmp_path / "second", order="balanced", total_episodes=10, start_from=start,
        early_stopping=False, learning_rate=1e-12, learning_rate_end=1e-12,
    )  # fmt: skip
    old, new = (run.checkpoint("last").arrays for run in (first, second))
    np.testing.assert_allclose(new["actor.0.weight"], old["actor.0.weight"], atol=1e-7)
    assert new["adam.step"][0] > old["adam.step"][0] > 0


def test_a_run_does_not_start_from_a_policy_of_another_size(tmp_path: Path) -> None:
    first = train_run(tmp_path / "first", total_episodes=10)
    with pytest.raises(ValueError, match=r"start_from: the networks in .* do not match this"):
        train_run(tmp_path / "second", total_episodes=10, start_from=str(first.path), hidden=(9,))


@pytest.mark.parametrize("definition", ["host", "fix-type"])
def test_workflow_json_and_an_evaluation_of_the_same_games_give_the_same_compliance(
    tmp_path: Path, definition: Any
) -> None:
    settings = {"order": "user_priority", "definition": definition, "total_episodes": 10}
    run = train_run(tmp_path / "run", **settings, max_steps=60)
    written = json.loads((run.path / "workflow.json").read_text())
    trial = Trial(
        episodes=written["episodes"], max_steps=60, seed=ORDER_SEED, order=written["order"],
        definition=definition,
    )  # fmt: skip
    evaluated = play_and_count(load(str(run.path), "last"), trial, "B_lineAgent").compliance()
    assert evaluated is not None
    assert evaluated.decisions
    shares = asdict(evaluated)
    assert shares == {name: written[name] for name in shares}


def test_a_universal_run_draws_orders_and_resumes_to_the_same_results(tmp_path: Path) -> None:
    settings = {"universal": True, "order_input": True, "total_episodes": 60, "max_steps": 20}
    whole = train_run(tmp_path / "whole", **settings)
    config = TrainConfig.from_flat(**{**QUICK, **settings})
    parts = runs.create(tmp_path / "parts", config.as_dict(), "0")
    stops = iter([False, True])
    assert not runner.train(parts, NullListener(), lambda: next(stops))
    assert runner.train(parts, NullListener(), never)
    expected, resumed = (run.checkpoint("last").arrays for run in (whole, parts))
    assert all((expected[name] == resumed[name]).all() for name in expected)
    histories = expected["collector.history"]
    assert len({row.tobytes() for row in histories}) > 1


def test_compliance_is_the_same_with_worker_processes(tmp_path: Path) -> None:
    settings = {"order": "reverse", "total_episodes": 20, "early_stopping": False}
    native = train_run(tmp_path / "native", **settings).metrics()
    workers = train_run(tmp_path / "workers", **settings, backend="workers").metrics()
    for name in ("alignment_mean", "compliance", "coverage", "decisions", "wasted_fixes"):
        assert workers[name] == native[name], name


def test_a_run_stops_at_its_target_score(tmp_path: Path) -> None:
    config = SHORT.with_settings(n_eval_episodes=2, target_score=-1e9)
    run = create_run(tmp_path / "run", config)
    assert runner.train(run, NullListener(), never)
    state = run.checkpoint("last").state
    assert state["finished"]
    assert state["episodes"] < config.run.total_episodes
    assert "reaches the target" in state["progress"]["stop_reason"]

    update = state["update"]
    assert runner.train(run, NullListener(), never)  # resumed: nothing left to do
    assert run.checkpoint("last").state["update"] == update


def test_a_run_stops_after_evaluations_without_a_new_best_score(tmp_path: Path) -> None:
    # Almost no learning: some evaluation after the first is no better.
    config = SHORT.with_settings(n_evals=20, n_eval_episodes=2, learning_rate=1e-9, eval_patience=1)
    run = create_run(tmp_path / "run", config)
    assert runner.train(run, NullListener(), never)
    state = run.checkpoint("last").state
    assert state["finished"]
    assert state["episodes"] < config.run.total_episodes
    assert state["progress"]["stop_reason"] == "1 evaluations in a row gave no new best score"
