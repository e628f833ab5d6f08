"""Profiles of real training."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from cagepool import runs
from cagepool.bench.profile.result import Profile
from cagepool.bench.profile.train import profile_training
from cagepool.runs import Columns
from cagepool.train.config import TrainConfig
from cagepool.train.rollout import Collector
from tests.train.listening import Silent, never

SMALL = {"n_envs": 50, "max_steps": 25, "update_steps": 25, "total_episodes": 600, "n_evals": 2,
         "n_eval_episodes": 20, "red_agent": "b_line"}  # fmt: skip
COLLECTING = ("policy forward", "sampling", "env step", "transport", "waiting",
              "true state, compliance", "storing")  # fmt: skip


def profiled(folder: Path, **settings: Any) -> tuple[Profile, Columns]:
    run = runs.create(folder, TrainConfig.from_flat(**{**SMALL, **settings}).as_dict(), "0")
    return profile_training(run, Silent(), never), run.metrics()


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> tuple[Profile, Columns, float]:
    start = time.perf_counter()
    profile, metrics = profiled(tmp_path_factory.mktemp("profile") / "run")
    return profile, metrics, time.perf_counter() - start


def test_stages_add_up_to_the_wall_time(usual: tuple[Profile, Columns, float]) -> None:
    profile, _, outside = usual
    assert sum(profile.stages().values()) == pytest.approx(profile.wall_seconds, rel=1e-6)
    assert profile.wall_seconds < outside
    shares = {name: value / profile.wall_seconds for name, value in profile.stages().items()}
    assert shares["other"] < 0.1  # nearly all of it has a name; here it is about 0.005
    assert "not looked into" not in shares


def test_stages_agree_with_the_times_that_training_takes_itself(
    usual: tuple[Profile, Columns, float],
) -> None:
    profile, metrics, _ = usual
    stages = profile.stages()
    collected = sum(stages.get(name, 0.0) for name in COLLECTING)
    # The run's own times hold what is done around collecting too, and a busy machine's pauses.
    assert collected == pytest.approx(sum(metrics["collect_seconds"]), rel=0.05, abs=0.02)
    updated = stages["update"] + stages["advantage"]
    assert updated == pytest.approx(sum(metrics["update_seconds"]), rel=0.05, abs=0.02)


def test_native_games_send_no_messages(usual: tuple[Profile, Columns, float]) -> None:
    profile, _, _ = usual
    assert profile.traffic == {
        "environments": 50,
        "messages": 0,
        "message_bytes": 0,
        "array_bytes": 50 * (4 * 52 + 8 + 1 + 8),  # observation, reward, end, moves
    }
    assert profile.steps == 300


def test_sampling_made_slower_shows_by_how_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept_s = 0.0
    choose = Collector._choose

    def slow(*arguments: Any) -> None:
        nonlocal slept_s
        start = time.perf_counter()
        time.sleep(0.002)
        slept_s += time.perf_counter() - start
        choose(*arguments)

    monkeypatch.setattr(Collector, "_choose", slow)
    profile, _ = profiled(tmp_path / "run", total_episodes=400)
    stages = profile.stages()
    named = sum(stages[name] for name in COLLECTING if name in stages)
    # Some slices stand for all, in which pauses were a little longer or shorter.
    assert stages["sampling"] == pytest.approx(slept_s, rel=0.1)
    assert named - stages["sampling"] < slept_s / 2


def test_collecting_in_a_thread_of_its_own_is_shown_beside(tmp_path: Path) -> None:
    profile, _ = profiled(tmp_path / "run", overlap=True, total_episodes=300)
    main, beside = profile.threads
    for thread in (main, beside):
        total = sum(profile.stages(thread).values())
        assert total == pytest.approx(profile.wall_seconds, rel=1e-6)
    assert {"update", "waiting"} <= profile.stages(main).keys()
    assert "env step" not in profile.stages(main)
    assert {"env step", "storing", "idle"} <= profile.stages(beside).keys()


def test_the_part_of_an_update_in_another_thread_is_shown_beside(tmp_path: Path) -> None:
    profile, _ = profiled(tmp_path / "run", threads=2, n_envs=100, total_episodes=200)
    main, beside = profile.threads
    assert set(profile.stages(beside)) == {"update", "idle", "profiler"}
    assert min(profile.stages(thread)["update"] for thread in (main, beside)) > 0
    assert profile.stages(main)["waiting"] > 0


def test_an_order_kept_in_workers_is_judged_in_a_stage_of_its_own(tmp_path: Path) -> None:
    settings = {
        "n_envs": 4,
        "total_episodes": 12,
        "order": "critical_first",
        "early_stopping": False,
    }
    profile, _ = profiled(tmp_path / "run", backend="workers", order_eval_episodes=2, **settings)
    stages = profile.stages()
    assert min(stages[name] for name in ("true state, compliance", "waiting", "transport")) > 0
    assert "env step" not in stages
    workers = min(4, len(os.sched_getaffinity(0)))
    assert profile.traffic["messages"] >= 2 * workers  # one each way, and infos that came late
    assert any("worker processes" in note for note in profile.notes)


def test_an_order_kept_in_the_core_is_part_of_its_step(tmp_path: Path) -> None:
    settings = {"total_episodes": 100, "order": "critical_first", "early_stopping": False}
    profile, _ = profiled(tmp_path / "run", order_eval_episodes=2, **settings)
    assert "true state, compliance" not in profile.stages()
    assert any("inside the core" in note for note in profile.notes)


def test_other_environments_are_looked_into_too(tmp_path: Path) -> None:
    settings = {"env": "CartPole-v1", "n_envs": 4, "backend": "sync", "total_episodes": 20}
    profile, _ = profiled(tmp_path / "run", **settings)
    assert min(profile.stages()[name] for name in ("env step", "transport", "update")) > 0
