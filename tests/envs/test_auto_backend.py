"""Backend `auto` follows its measurement, and tries an environment only if that matters."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import psutil
import pytest

from cagepool import make_vec
from cagepool.bench.measure import ComputingEnv, DummyEnv
from cagepool.envs import auto_backend
from cagepool.envs.auto_backend import StepCost
from cagepool.envs.workers.shared_memory import missing_system_calls


def set_times(
    monkeypatch: pytest.MonkeyPatch, times: Callable[[int, StepCost], tuple[float, float]]
) -> None:
    """Replace the measurement: seconds of `sync` and `workers`; there are two cores."""
    set_rounds(monkeypatch, lambda num_envs, cost: [times(num_envs, cost)])


def set_rounds(
    monkeypatch: pytest.MonkeyPatch,
    rounds: Callable[[int, StepCost], list[tuple[float, float]]],
) -> None:
    monkeypatch.setattr(auto_backend, "usable_cores", lambda: 2)
    monkeypatch.setattr(auto_backend, "rehearse", lambda num_envs, cost, _: rounds(num_envs, cost))


@pytest.mark.parametrize(
    ("sync_s", "workers_s", "expected"),
    [(1.0, 0.5, "workers"), (1.0, 0.8, "workers"), (1.0, 0.9, "sync"), (1.0, 25.0, "sync")],
)
@pytest.mark.parametrize("num_envs", [2, 20, 1000])
def test_processes_are_taken_where_the_measurement_finds_them_clearly_faster(
    sync_s: float, workers_s: float, expected: str, num_envs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_times(monkeypatch, lambda *_: (sync_s, workers_s))
    monkeypatch.setattr(auto_backend, "measure_step", lambda _: StepCost(1e-6))
    assert auto_backend.choose_backend([DummyEnv] * num_envs) == expected


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ([0.5, 0.5, 30.0, 0.5, 12.0], "workers"),  # two rounds in which others had the cores
        ([0.4, 3.0, 0.5, 2.0, 5.0], "sync"),  # workers win only while others pause
        ([0.8, 0.9, 1.0, 0.9, 0.8], "sync"),  # a difference within the noise
    ],
)
def test_most_rounds_of_a_noisy_measurement_decide(
    ratios: list[float], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_rounds(monkeypatch, lambda *_: [(1.0, ratio) for ratio in ratios])
    monkeypatch.setattr(auto_backend, "measure_step", lambda _: StepCost(1e-6))
    assert auto_backend.choose_backend([DummyEnv] * 20) == expected


def test_a_small_gain_of_the_overhead_alone_is_no_reason_for_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(auto_backend, "measure_step", lambda _: StepCost(1e-6))
    set_times(monkeypatch, lambda _, cost: (1.0, 2.0 if cost.compute_s else 0.8))
    assert auto_backend.choose_backend([DummyEnv] * 20) == "sync"


def test_the_cost_of_a_step_decides_where_overhead_alone_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_times(monkeypatch, lambda _, cost: (1.0, 0.5 if cost.compute_s > 1e-3 else 2.0))
    assert auto_backend.choose_backend([DummyEnv] * 2) == "sync"
    assert auto_backend.choose_backend([partial(ComputingEnv, 2e-3)] * 2) == "workers"


def test_long_steps_take_processes_without_a_rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    long = StepCost(auto_backend.MAX_REHEARSED_S)

    def times(_: int, cost: StepCost) -> tuple[float, float]:
        assert cost != long
        return 1.0, 2.0

    set_times(monkeypatch, times)
    monkeypatch.setattr(auto_backend, "measure_step", lambda _: long)
    assert auto_backend.choose_backend([DummyEnv] * 3) == "workers"


def test_a_step_of_all_that_is_long_in_one_process_is_not_rehearsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cost = StepCost(auto_backend.MAX_REHEARSED_S / 4)

    def times(_: int, given: StepCost) -> tuple[float, float]:
        assert given != cost
        return 1.0, 2.0

    set_times(monkeypatch, times)
    monkeypatch.setattr(auto_backend, "usable_cores", lambda: 64)
    monkeypatch.setattr(auto_backend, "measure_step", lambda _: cost)
    assert auto_backend.choose_backend([DummyEnv] * 128) == "workers"


def test_one_core_is_no_place_for_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    set_times(monkeypatch, lambda *_: (1.0, 0.1))
    monkeypatch.setattr(auto_backend, "usable_cores", lambda: 1)
    assert auto_backend.choose_backend([DummyEnv] * 100) == "sync"


def test_without_worker_processes_a_model_of_pipes_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(auto_backend, "usable_cores", lambda: 2)
    monkeypatch.setattr(auto_backend, "missing_system_calls", lambda: ["epoll"])
    assert auto_backend.choose_backend([DummyEnv] * 20) == "sync"
    assert auto_backend.choose_backend([partial(ComputingEnv, 2e-3)] * 20) == "pipes"


@pytest.mark.skipif(bool(missing_system_calls()), reason="worker processes need Linux")
def test_a_rehearsal_takes_at_least_the_time_of_the_work_in_it() -> None:
    for cost in (StepCost(1e-3), StepCost(0.0, 1e-3)):
        rounds = auto_backend.rehearse(4, cost, 2)
        assert len(rounds) == auto_backend.ROUNDS
        assert all(sync_s >= 4e-3 and workers_s >= 2e-3 for sync_s, workers_s in rounds)


def test_a_rehearsal_leaves_no_thread_and_no_descriptor_behind() -> None:
    process = psutil.Process()
    auto_backend.rehearse(2, StepCost(0.0), 2)
    before = (process.num_threads(), process.num_fds())
    auto_backend.rehearse(2, StepCost(0.0), 2)
    assert (process.num_threads(), process.num_fds()) == before


def test_the_choice_is_visible(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for workers_s, expected in ((0.5, "workers"), (2.0, "sync")):
        set_times(monkeypatch, lambda *_, seconds=workers_s: (1.0, seconds))
        caplog.clear()
        with caplog.at_level("INFO", logger="cagepool.envs.auto_backend"):
            envs = make_vec(2, env=DummyEnv)
        assert envs.metadata["backend"] == expected
        assert f"backend 'auto' is '{expected}' for 2 environments" in caplog.text
        envs.close()


def test_a_step_of_all_takes_as_long_as_the_fullest_process() -> None:
    one = auto_backend.predict_step_s("workers", 2, 1.0, 2)
    assert auto_backend.predict_step_s("workers", 3, 1.0, 2) == pytest.approx(
        one + 1, abs=1e-4
    )  # overhead
    assert auto_backend.predict_step_s("sync", 3, 1.0, 2) == pytest.approx(3, abs=1e-4)  # overhead


class Counted(DummyEnv):
    """Ends an episode every third step, and counts calls."""

    def __init__(self) -> None:
        super().__init__()
        self.resets = self.steps = 0
        self.closed = False

    def reset(self, **keywords: Any) -> Any:
        self.resets += 1
        return super().reset(**keywords)

    def step(self, action: np.int64) -> Any:
        self.steps += 1
        seen, reward, _, _, infos = super().step(action)
        return seen, reward, self.steps % 3 == 0, False, infos

    def close(self) -> None:
        self.closed = True


def test_a_trial_is_short_resets_what_has_ended_and_closes() -> None:
    env = Counted()
    assert auto_backend.measure_step(lambda: env) is not None
    assert 1 <= env.steps <= auto_backend.TRIAL_STEPS
    assert env.resets == 1 + env.steps // 3
    assert env.closed


@pytest.mark.parametrize(("wait_s", "expected_s"), [(0.8e-6, 0.0), (1e-3, 1e-3)])
def test_a_wait_shorter_than_the_clocks_can_tell_is_none(
    wait_s: float, expected_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute_s = 1e-6
    now_s = {"elapsed": 0.0, "cpu": 0.0}
    env = Counted()
    step = env.step

    def timed_step(action: np.int64) -> Any:
        now_s["elapsed"] += compute_s + wait_s
        now_s["cpu"] += compute_s
        return step(action)

    monkeypatch.setattr(env, "step", timed_step)
    monkeypatch.setattr(time, "perf_counter", lambda: now_s["elapsed"])
    monkeypatch.setattr(time, "thread_time", lambda: now_s["cpu"])
    cost = auto_backend.measure_step(lambda: env)
    assert cost == pytest.approx((compute_s, expected_s))


def test_the_time_of_the_clocks_is_not_part_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_s, compute_s = 1e-6, 50e-9
    now_s = 0.0

    def read_clock() -> float:
        nonlocal now_s
        now_s += clock_s
        return now_s

    class Computing(DummyEnv):
        def step(self, action: np.int64) -> Any:
            nonlocal now_s
            now_s += compute_s
            return super().step(action)

    monkeypatch.setattr(time, "perf_counter", read_clock)
    monkeypatch.setattr(time, "thread_time", read_clock)
    assert auto_backend.measure_step(Computing) == pytest.approx((compute_s, 0.0))


def test_every_environment_that_is_tried_is_closed_and_at_most_one_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Counted] = []

    def make() -> Counted:
        made.append(Counted())
        return made[-1]

    set_times(monkeypatch, lambda num_envs, _: (1.0, 0.5 if num_envs > 100 else 2.0))
    assert auto_backend.choose_backend([make]) == "sync"
    assert auto_backend.choose_backend([make] * 1000) == "workers"
    assert made == []
    assert auto_backend.choose_backend([make] * 3) == "sync"
    (tried,) = made
    assert tried.closed


class Failing(Counted):
    def step(self, action: np.int64) -> Any:
        super().step(action)
        raise RuntimeError("broken")


def test_an_environment_that_fails_in_its_trial_is_closed_and_left_to_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = Failing()
    set_times(monkeypatch, lambda *_: (1.0, 2.0))
    assert auto_backend.choose_backend([lambda: env] * 3) == "workers"
    assert env.closed
