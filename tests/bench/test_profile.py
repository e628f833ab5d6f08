"""Profiles: their stages sum to the wall time."""

import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cagepool import _core, runs
from cagepool._stages import StageTimes, record
from cagepool.bench import profile as profiler
from cagepool.bench.profile import (
    STAGES,
    EntryCost,
    Profile,
    StepConfig,
    corrected_times,
    measure_entry_cost,
    profile_steps,
    profile_training,
    to_speedscope,
    write_profile,
)
from cagepool.runs import Columns
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from tests.bench.fake_envs import SLEEP_SECONDS
from tests.test_stages import FakeClock
from tests.train.null_listener import NullListener, never

SLEEPY = "tests.bench.fake_envs:sleepy_env"
SMALL: dict[str, Any] = {
    "n_envs": 20,
    "max_steps": 10,
    "update_steps": 10,
    "total_episodes": 60,
    "n_evals": 1,
    "n_eval_episodes": 5,
    "red_agent": "b_line",
}
COLLECTING = ("rollout", "policy_forward", "sampling", "env_step", "compliance")
needs_workers = pytest.mark.skipif(sys.platform != "linux", reason="workers need Linux")


def check_sums(profile: Profile) -> None:
    for thread in profile.threads:
        total = sum(profile.thread_stages(thread).values())
        assert total == pytest.approx(profile.wall_seconds, rel=1e-6)
    assert profile.stages == profile.thread_stages()


def step_profile(**settings: Any) -> Profile:
    progress: list[int] = []
    profile = profile_steps(StepConfig(**settings), progress.append)
    assert progress[-1] == profile.steps == settings["steps"]
    check_sums(profile)
    return profile


def train_profile(folder: Path, **settings: Any) -> tuple[Profile, Columns]:
    config = TrainConfig.from_flat(**{**SMALL, **settings})
    run = runs.create(folder, config.as_dict(), "0")
    profile = profile_training(config, lambda: runner.train(run, NullListener(), never))
    check_sums(profile)
    return profile, run.metrics()


def tree(**unsampled: float) -> StageTimes:
    """A second outside all stages, and 100 entries of a stage with 100 nested entries."""
    children = [StageTimes("rollout", 5.0, 100, (StageTimes("env_step", 10.0, 100),))]
    if unsampled:
        children.append(StageTimes("unsampled", unsampled["seconds"], 1))
    return StageTimes("other", 1.0, 0, tuple(children))


def test_the_cost_of_the_recording_becomes_a_stage() -> None:
    corrected = corrected_times(tree(), EntryCost(inside=0.01, outside=0.005))
    assert corrected.by_stage() == pytest.approx(
        {"other": 0.5, "rollout": 3.5, "env_step": 9.0, "profiler": 3.0}
    )
    assert corrected.total == pytest.approx(16.0)


def test_more_time_than_a_stage_took_is_not_subtracted() -> None:
    corrected = corrected_times(tree(), EntryCost(inside=1.0, outside=0.0))
    assert corrected.by_stage()["env_step"] == 0
    assert corrected.total == pytest.approx(16.0)


def test_recorded_stages_stand_for_the_time_that_was_not_recorded() -> None:
    corrected = corrected_times(tree(seconds=48.0), EntryCost(0.0, 0.0))
    assert corrected.by_stage() == {
        "other": 4.0,
        "rollout": 20.0,
        "env_step": 40.0,
        "profiler": 0.0,
    }
    assert corrected.calls_of("env_step") == 400


def test_the_cost_of_an_entry_is_measured() -> None:
    cost = measure_entry_cost(FakeClock(tick=0.125))
    assert cost.inside == 0.125
    assert cost.outside == pytest.approx(0.125, rel=0.05)  # and one last reading


def test_a_profile_of_native_steps_has_the_step_and_the_loop_around_it() -> None:
    profile = step_profile(n_envs=100, steps=500)
    assert profile.stages.keys() == {"env_step", "profiler", "other"}
    assert profile.threads["main"].calls_of("env_step") > 0
    assert profile.overhead.entries < 500 + 500  # steps and pauses
    assert 0 < profile.overhead.recorded_share <= 1


def test_few_blocks_are_recorded_where_the_overhead_is_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(profiler, "measure_entry_cost", lambda: EntryCost(1.0, 1.0))
    profile = step_profile(n_envs=1, steps=1000)
    steps_per_block = 1000 // profiler.MAX_BLOCKS
    pauses = profiler.MAX_BLOCKS - 1
    assert profile.overhead.entries == steps_per_block + pauses


def test_reading_true_states_is_a_stage() -> None:
    profile = step_profile(n_envs=100, steps=30, true_state="3")
    assert profile.stages["compliance"] > 0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of a profile, which only sleeping moves; each reading takes a nanosecond."""
    clock = FakeClock(tick=1e-9)
    monkeypatch.setattr(profiler, "record", partial(record, clock))
    monkeypatch.setattr(profiler, "measure_entry_cost", lambda: EntryCost(1e-9, 1e-9))
    monkeypatch.setattr(time, "perf_counter", clock)
    monkeypatch.setattr(time, "sleep", clock.advance)
    return clock


@pytest.mark.usefixtures("clock")
def test_a_slow_step_shows_its_time() -> None:
    profile = step_profile(env=SLEEPY, backend="sync", n_envs=2, steps=50)
    assert profile.stages["env_step"] == pytest.approx(100 * SLEEP_SECONDS, rel=1e-3)
    outside = sum(profile.stages.values()) - profile.stages["env_step"]
    assert outside < 1e-3 * SLEEP_SECONDS * 100


@needs_workers
def test_a_slow_step_in_a_worker_is_waited_for() -> None:
    profile = step_profile(env=SLEEPY, backend="workers", n_envs=1, steps=50)
    assert profile.threads["main"].calls_of("worker_wait") >= 50
    assert profile.stages["worker_wait"] > 0
    assert profile.traffic.messages == 2  # one in each direction
    assert profile.traffic.message_bytes == 8
    # Observation, action, reward, and two flags.
    assert profile.traffic.array_bytes == 4 * 52 + 8 + 8 + 1 + 1


def test_messages_of_gymnasium_are_not_counted() -> None:
    profile = step_profile(backend="pipes", n_envs=2, steps=6)
    assert profile.traffic.messages is None
    assert profile.traffic.array_bytes == 2 * 4 * 52


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_envs": 0}, "n_envs must be at least 1, got 0"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"true_state": "often"}, "true_state must be every, end, never or .*, got 'often'"),
        ({"true_state": "0"}, "true_state must be every, end, never or .*, got '0'"),
        ({"order": "no_such"}, "no_such"),
        ({"env": "CartPole-v1", "order": "critical_first"}, "an order needs CAGE-2 or cyborg"),
        ({"env": "CartPole-v1", "true_state": "every"}, "true_state needs CAGE-2 or cyborg"),
        ({"backend": "sync", "order": "critical_first"}, "an order needs native games"),
        ({"backend": "nowhere"}, "backend must be one of"),
        ({"env": "NoSuchEnv-v0"}, "env must be an id that Gymnasium knows"),
        ({"red_agent": "Nobody"}, "Nobody"),
    ],
)
def test_a_wrong_setting_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        profile_steps(StepConfig(**settings), lambda _: None)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> tuple[Profile, Columns, float]:
    """A training of one thread with its metrics and its time, all in CPU time of the thread."""
    settings = {"threads": 1, "total_episodes": 1000}  # so long that its start hardly counts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profiler, "record", lambda *_: record(time.thread_time))
        patch.setattr(time, "perf_counter", time.thread_time)
        start = time.thread_time()
        profile, metrics = train_profile(tmp_path_factory.mktemp("usual") / "run", **settings)
        return profile, metrics, time.thread_time() - start


def test_the_wall_time_is_that_of_the_training(usual: tuple[Profile, Columns, float]) -> None:
    profile, _, elapsed = usual
    assert profile.wall_seconds < elapsed
    assert profile.stages["other"] < 0.1 * profile.wall_seconds  # nearly everything has a stage


def test_every_part_of_a_training_has_its_stage(usual: tuple[Profile, Columns, float]) -> None:
    profile, metrics, _ = usual
    assert profile.stages.keys() >= {
        *("setup", "rollout", "policy_forward", "env_step", "advantages", "update"),
        *("evaluation", "logging", "checkpoint", "profiler", "other"),
    }
    assert min(profile.stages.values()) >= 0
    updates = len(metrics["update"])
    main = profile.threads["main"]
    assert main.calls_of("rollout") == updates
    assert main.calls_of("env_step") == profile.steps == updates * SMALL["update_steps"]
    assert main.calls_of("evaluation") == 1


def test_stages_agree_with_the_times_in_the_metrics(usual: tuple[Profile, Columns, float]) -> None:
    profile, metrics, _ = usual
    # The metrics include the code around the stages.
    collected = sum(profile.stages.get(name, 0.0) for name in COLLECTING)
    assert collected == pytest.approx(sum(metrics["collect_seconds"]), rel=0.05, abs=0.02)
    updated = sum(profile.stages[name] for name in ("update", "advantages"))
    assert updated == pytest.approx(sum(metrics["update_seconds"]), rel=0.05, abs=0.02)


def test_the_overhead_is_the_number_of_stages_times_their_cost(
    usual: tuple[Profile, Columns, float],
) -> None:
    profile, _, _ = usual
    overhead = profile.overhead
    counted = overhead.entries * overhead.seconds_per_entry
    assert overhead.share * profile.wall_seconds <= counted * 1.01
    assert overhead.recorded_share == 1.0


def test_native_games_send_no_messages(usual: tuple[Profile, Columns, float]) -> None:
    profile, _, _ = usual
    traffic = profile.traffic
    assert (traffic.messages, traffic.message_bytes) == (0, 0)


def test_a_slow_stage_shows_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    calls = 0
    sample = _core.sample_choices

    def slow(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        clock.advance(0.005)
        sample(*arguments)

    monkeypatch.setattr("cagepool._core.sample_choices", slow)
    profile, _ = train_profile(tmp_path / "run", network="gru", threads=1)
    stages = profile.stages
    assert stages["sampling"] == pytest.approx(0.005 * calls, rel=1e-3)
    others = sum(stages.get(name, 0.0) for name in COLLECTING if name != "sampling")
    assert others < 1e-3 * stages["sampling"]


def test_a_rollout_thread_is_shown_beside_the_main_thread(tmp_path: Path) -> None:
    profile, _ = train_profile(tmp_path / "run", overlap=True, threads=1)
    main, other = profile.threads
    assert {"update", "thread_wait"} <= profile.thread_stages(main).keys()
    assert "env_step" not in profile.thread_stages(main)
    assert {"env_step", "rollout", "idle"} <= profile.thread_stages(other).keys()


@needs_workers
def test_compliance_of_workers_is_a_stage(tmp_path: Path) -> None:
    settings = {
        "n_envs": 4,
        "total_episodes": 8,
        "order": "critical_first",
        "early_stopping": False,
    }
    profile, _ = train_profile(
        tmp_path / "run", backend="workers", order_eval_episodes=2, **settings
    )
    assert min(profile.stages[name] for name in ("compliance", "worker_wait", "env_step")) > 0
    workers = min(4, len(os.sched_getaffinity(0)))
    assert profile.traffic.messages is not None
    assert profile.traffic.messages >= 2 * workers  # one in each direction, and late infos


def test_compliance_of_native_games_is_part_of_their_step(tmp_path: Path) -> None:
    settings = {"order": "critical_first", "early_stopping": False, "order_eval_episodes": 2}
    profile, _ = train_profile(tmp_path / "run", **settings)
    assert "compliance" not in profile.stages


def test_other_environments_are_profiled_too(tmp_path: Path) -> None:
    settings = {"env": "CartPole-v1", "n_envs": 4, "backend": "sync", "total_episodes": 10}
    profile, _ = train_profile(tmp_path / "run", **settings)
    assert min(profile.stages[name] for name in ("env_step", "rollout", "update")) > 0


def test_a_training_on_ray_is_refused() -> None:
    with pytest.raises(ValueError, match="got backend ray"):
        profile_training(TrainConfig.from_flat(**{**SMALL, "backend": "ray"}), lambda: None)


def test_a_written_profile_is_read_as_it_was(
    usual: tuple[Profile, Columns, float], tmp_path: Path
) -> None:
    profile, _, _ = usual
    write_profile(profile, tmp_path / "profile.json")
    read = msgspec.json.decode((tmp_path / "profile.json").read_bytes(), type=Profile)
    assert json.loads((tmp_path / "profile.json").read_text())["kind"] == "train"
    assert read.threads == profile.threads
    assert read.stages == profile.stages


def test_the_flame_graph_has_the_form_that_speedscope_reads(
    usual: tuple[Profile, Columns, float],
) -> None:
    """By https://www.speedscope.app/file-format-schema.json."""
    profile, _, _ = usual
    content = json.loads(json.dumps(to_speedscope(profile)))
    assert content["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = content["shared"]["frames"]
    assert [frame["name"] for frame in frames] == [*STAGES]
    assert [one["name"] for one in content["profiles"]] == [*profile.threads]
    for one in content["profiles"]:
        assert (one["type"], one["unit"], one["startValue"]) == ("sampled", "seconds", 0)
        assert len(one["samples"]) == len(one["weights"])
        assert all(0 <= frame < len(frames) for stack in one["samples"] for frame in stack)
        assert min(one["weights"]) > 0
        assert one["endValue"] == pytest.approx(sum(one["weights"]))
        assert one["endValue"] == pytest.approx(profile.wall_seconds)
    stacks = [[STAGES[frame] for frame in stack] for stack in content["profiles"][0]["samples"]]
    assert ["other", "rollout", "env_step"] in stacks
