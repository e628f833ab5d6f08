"""The bench of PPO in one JAX program, without JAX."""

import subprocess
from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks.suites.jax_training import JaxTrainingConfig, measure_jax_training

CONFIG = JaxTrainingConfig(repetitions=2, seeds=(1, 2), updates=1, n_envs=8, n_steps=10)
ONE = replace(CONFIG, seeds=(1,))


def time_seeds(seconds: dict[int, float], started: list[int]) -> Callable[..., float]:
    """Timer that takes these seconds per number of seeds and notes its calls."""

    def time_training(config: JaxTrainingConfig, seeds: int) -> float:
        assert config == CONFIG
        started.append(seeds)
        return seconds[seeds]

    return time_training


def answer(*outcomes: str | None, started: list[list[str]]) -> Callable[..., object]:
    """`subprocess.run` whose processes print these outcomes in turn; None never ends."""
    left = iter(outcomes)

    def run(command: list[str], *, timeout: float, **_: object) -> object:
        started.append(command)
        if (outcome := next(left)) is None:
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, 0, outcome, "")

    return run


def test_several_seeds_are_trained_in_turns_with_one_and_compared_by_all_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[int] = []
    timer = time_seeds({1: 0.5, 2: 0.8}, started)
    monkeypatch.setattr("benchmarks.suites.jax_training._time_training", timer)
    progress: list[tuple[str, int, int]] = []

    figures = measure_jax_training(CONFIG, lambda *done: progress.append(done))

    assert started == [1, 2, 1, 2]
    assert progress == [("training", done, 4) for done in (1, 2, 3, 4)]
    one, two = figures.groups["training"]
    assert one.repetitions is not None
    assert two.repetitions is not None
    assert (one.repetitions.steps_per_call, one.repetitions.seconds) == (80, [0.5, 0.5])
    assert (two.repetitions.steps_per_call, two.repetitions.seconds) == (160, [0.8, 0.8])
    assert (one.steps_per_second, two.steps_per_second) == (160, 200)
    assert figures.ratios == {"2 seeds / 1, steps of all seeds": 1.25}


def test_a_training_that_hangs_is_started_once_again(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", answer(None, "0.25\n", "0.5\n", started=started))

    figures = measure_jax_training(ONE, lambda *_: None)

    assert [command[-4:] for command in started] == [["1", "1", "8", "10"]] * 3
    (training,) = figures.groups["training"]
    assert training.repetitions is not None
    assert training.repetitions.seconds == [0.25, 0.5]


def test_a_training_that_hangs_again_is_an_error_that_names_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", answer(None, None, started=started))
    message = r"^a training must end within 300 seconds, got 2 processes that did not$"

    with pytest.raises(RuntimeError, match=message):
        measure_jax_training(ONE, lambda *_: None)

    assert len(started) == 2
