"""Profiles of real steps."""

import sys
from typing import Any

import pytest

from cagepool.bench.profile.result import Profile
from cagepool.bench.profile.step import StepConfig, profile_steps
from tests.bench.profile.fake import SLEEP_S, Sleepy

SLEEPY = "tests.bench.profile.fake:sleepy"


def profiled(**settings: Any) -> Profile:
    told: list[int] = []
    profile = profile_steps(StepConfig(**settings), told.append)
    assert told[-1] == profile.steps == settings["steps"]
    total = sum(profile.stages().values())
    assert total == pytest.approx(profile.wall_seconds, rel=1e-6)
    return profile


def test_a_step_of_native_games_is_the_core_and_little_around_it() -> None:
    profile = profiled(n_envs=1000, steps=2000)
    stages = profile.stages()
    assert stages["env step"] > 0.5 * profile.wall_seconds  # about 0.9
    assert "true state, compliance" not in stages
    assert profile.overhead["by_turns"] is not None


def test_looking_at_true_states_is_a_stage() -> None:
    profile = profiled(n_envs=100, steps=300, true_state="3")
    (played,) = (part for part in profile.threads["main"].parts if part.label == "Stepping.play")
    (looks,) = (part for part in played.parts if part.label == "Stepping.look")
    assert looks.stage == "true state, compliance"
    assert looks.seconds > 0


def test_a_step_made_slower_shows_by_how_much() -> None:
    Sleepy.slept_s = 0.0
    profile = profiled(env=SLEEPY, backend="sync", n_envs=2, steps=100)
    stages = profile.stages()
    # Some slices stand for all, in which pauses were a little longer or shorter.
    assert stages["env step"] == pytest.approx(Sleepy.slept_s, rel=0.1)
    assert Sleepy.slept_s >= 200 * SLEEP_S


@pytest.mark.skipif(sys.platform != "linux", reason="workers need Linux")
def test_a_slow_step_in_a_worker_is_waited_for() -> None:
    profile = profiled(env=SLEEPY, backend="workers", n_envs=1, steps=100)
    stages = profile.stages()
    assert stages["waiting"] > 0.9 * 100 * SLEEP_S
    assert profile.traffic["messages"] == 2  # one each way
    assert profile.traffic["message_bytes"] == 8
    # Observation, action, reward and the two kinds of ends.
    assert profile.traffic["array_bytes"] == 4 * 52 + 8 + 8 + 1 + 1


@pytest.mark.parametrize(("true_state", "each_way"), [("never", 1), ("every", 2)])
def test_messages_through_pipes_are_counted(true_state: str, each_way: int) -> None:
    profile = profiled(backend="pipes", n_envs=2, steps=6, true_state=true_state)
    assert profile.traffic["messages"] == 2 * 2 * each_way
    assert profile.traffic["message_bytes"] > 100 * each_way
    assert profile.traffic["array_bytes"] == 2 * 4 * 52
    assert profile.stages()["waiting"] > 0


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
