"""Backend `auto` follows its cost model, and tries an environment only if that matters."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cagepool.bench.contenders import DummyEnv
from cagepool.envs import auto_backend


@pytest.mark.parametrize(
    ("num_envs", "step_s", "processes", "expected"),
    [
        (2, 1e-6, 2, False),
        (2, 20e-6, 2, True),
        (5, 1e-6, 2, False),
        (5, 10e-6, 2, True),
        (100, 0.0, 2, True),
        (5, 1e-2, 1, False),
    ],
)
def test_processes_are_taken_where_they_save_more_than_they_cost(
    num_envs: int, step_s: float, processes: int, expected: bool
) -> None:
    assert auto_backend.is_worthwhile("workers", num_envs, step_s, processes) == expected


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
    assert auto_backend.measure_step_s(lambda: env) is not None
    assert 1 <= env.steps <= auto_backend.TRIAL_STEPS
    assert env.resets == 1 + env.steps // 3
    assert env.closed


def test_no_environment_is_tried_where_its_cost_cannot_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(auto_backend, "usable_cores", lambda: 2)
    made: list[Counted] = []

    def make() -> Counted:
        made.append(Counted())
        return made[-1]

    assert auto_backend.choose_backend([make]) == "sync"
    assert auto_backend.choose_backend([make] * 1000) == "workers"
    assert made == []
    auto_backend.choose_backend([make] * 3)
    assert len(made) == 1


def test_the_page_states_the_costs_that_are_reckoned_with() -> None:
    page = (Path(__file__).parents[2] / "docs" / "own-environments.md").read_text()
    for name, cost in auto_backend.COSTS.items():
        (line,) = (line for line in page.splitlines() if re.match(rf"\| `{name}`.*`c` \+", line))
        numbers = [float(word) for word in re.findall(r"\d+\.?\d*", line)]
        assert numbers == pytest.approx([1e6 * cost.fixed_s, 1e6 * cost.per_env_s])  # microseconds
