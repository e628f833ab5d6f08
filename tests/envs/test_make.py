"""`make_vec` makes what it is asked for, and refuses what would be ignored."""

import sys
from dataclasses import fields
from functools import partial
from inspect import signature
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from cagepool import make, make_vec
from cagepool.bench.measure import ComputingEnv, DummyEnv
from cagepool.envs import Cage2Env, NativeVectorEnv, WorkerVectorEnv, auto_backend
from cagepool.envs.settings import ENV_SETTINGS, VEC_SETTINGS, EnvSettings
from cagepool.envs.workers.pool import PoolConfig
from cagepool.errors import EnvironmentFault
from cagepool.scenarios import CAGE2
from tests.envs.contract import assert_same
from tests.envs.workers.toy_envs import Checksummed

COSTLY = partial(ComputingEnv, 0.002)


@pytest.mark.parametrize(
    ("num_envs", "env", "kind"),
    [
        (2, None, NativeVectorEnv),
        (1, "cagepool/CAGE2-v0", NativeVectorEnv),
        (1, Checksummed, SyncVectorEnv),
        (2, DummyEnv, SyncVectorEnv),
        (2, [COSTLY, COSTLY], WorkerVectorEnv),
        (100, DummyEnv, WorkerVectorEnv),
    ],
)
def test_the_backend_is_chosen_by_environment_and_count(
    num_envs: int, env: Any, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def predict(
        num_envs: int, cost: auto_backend.StepCost, processes: int
    ) -> list[tuple[float, float]]:
        """As measured on an idle machine."""
        step_s = sum(cost)
        sync_s = auto_backend.predict_step_s("sync", num_envs, step_s, processes)
        return [(sync_s, auto_backend.predict_step_s("workers", num_envs, step_s, processes))]

    monkeypatch.setattr(auto_backend, "usable_cores", lambda: 2)
    monkeypatch.setattr(auto_backend, "rehearse", predict)
    envs = make_vec(num_envs, env=env)
    assert isinstance(envs, kind)
    envs.close()


def test_a_setting_of_workers_chooses_them() -> None:
    with make_vec(1, env=DummyEnv, timeout=5) as envs:  # type: ignore[attr-defined]
        assert isinstance(envs, WorkerVectorEnv)


def test_an_environment_that_fails_when_tried_is_left_to_workers() -> None:
    with pytest.raises(EnvironmentFault, match="no such thing"):
        make_vec(2, env=_failing)


def _failing() -> gym.Env[Any, Any]:
    raise OSError("no such thing")


@pytest.mark.parametrize(("backend", "kind"), [("sync", SyncVectorEnv), ("pipes", AsyncVectorEnv)])
def test_gymnasiums_own_classes_can_be_had(backend: Any, kind: Any) -> None:
    envs = make_vec(2, env=Checksummed, backend=backend)
    assert isinstance(envs, kind)
    envs.close()


@pytest.mark.parametrize("backend", ["sync", "workers"])
def test_a_name_that_gymnasium_knows_will_do(backend: Any) -> None:
    envs = make_vec(2, env="CartPole-v1", backend=backend)
    seen, _ = envs.reset(seed=0)
    assert_same(seen[1], gym.make("CartPole-v1").reset(seed=1)[0])
    envs.close()


@pytest.mark.parametrize("backend", ["sync", "workers"])
def test_games_may_have_settings_of_their_own(backend: Any) -> None:
    envs = make_vec(2, backend=backend, max_steps=[1, 2], red=["SleepAgent", "B_lineAgent"])
    envs.reset(seed=0)
    ends = [envs.step(np.zeros(2, int))[3].tolist() for _ in range(2)]
    assert ends == [[True, False], [False, True]]
    envs.close()


@pytest.mark.parametrize(
    ("keywords", "error", "sentence"),
    [
        ({"backend": "threads"}, ValueError, "backend must be one of auto, native"),
        ({"backend": "native", "env": Checksummed}, ValueError, "'native' plays CAGE-2 only"),
        ({"backend": "sync", "workers": 2}, TypeError, "backend 'sync' does not take workers"),
        ({"backend": "native", "timeout": 2}, TypeError, "'native' does not take timeout"),
        ({"backend": "workers", "threads": 2}, TypeError, "'workers' does not take threads"),
        ({"backend": "pipes", "true_state": "every"}, TypeError, "does not take true_state"),
        ({"check": True}, TypeError, "backend 'native' does not take check"),
        ({"backend": "sync", "check": True}, TypeError, "backend 'sync' does not take check"),
        ({"backend": "pipes", "check": True}, TypeError, "backend 'pipes' does not take check"),
        ({"env": Checksummed, "red": "mix"}, TypeError, "must not be given with a function"),
        ({"env": [Checksummed]}, ValueError, "there must be 2 functions, got 1"),
        ({"backend": "sync", "max_steps": [1, 2, 3]}, ValueError, "got 3 for 2 games"),
        ({"backend": "workers", "workers": 0}, ValueError, "workers must be at least 1, got 0"),
        ({"backend": "workers", "timeout": 0}, ValueError, "timeout must be more than 0"),
        ({"backend": "workers", "on_fault": "hope"}, ValueError, "on_fault must be 'raise' or"),
        ({"backend": "workers", "max_restarts": -1}, ValueError, "max_restarts must be at"),
        ({"backend": "workers", "autoreset": "never"}, ValueError, "autoreset must be next_step"),
    ],
)
def test_what_would_be_ignored_or_is_wrong_is_refused(
    keywords: Any, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        make_vec(2, **keywords)


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        (
            {"max_step": 5},
            r"^unknown setting max_step, did you mean max_steps\? the settings are red, edition,",
        ),
        ({"max_step": 5, "backend": "sync"}, r"^unknown setting max_step, did you mean max_steps"),
        ({"env": Checksummed, "worker": 2}, r"^unknown setting worker, did you mean workers\?"),
        ({"blue": "me"}, "^unknown setting blue, the settings are red,"),
        ({"autorest": "disabled"}, r"^unknown setting autorest, did you mean autoreset\?"),
        ({"red": "mix", "red_agent": "sleep"}, "^red must be given once, got red and red_agent$"),
        (
            {"max_steps": 5, "max_episode_steps": 6},
            "^max_steps must be given once, got max_steps and max_episode_steps$",
        ),
    ],
)
def test_a_misspelled_setting_is_answered_by_the_nearest_one(keywords: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        make_vec(2, **keywords)


@pytest.mark.parametrize("backend", ["native", "sync"])
def test_a_setting_may_have_the_name_of_the_command_line_or_of_gymnasium(backend: Any) -> None:
    settings: Any = {"red_agent": "sleep", "max_episode_steps": 3}
    envs = make_vec(2, backend=backend, **settings)
    envs.reset(seed=0)
    assert [bool(envs.step([0, 0])[3].all()) for _ in range(3)] == [False, False, True]
    batch = envs.batch if isinstance(envs, NativeVectorEnv) else envs.get_attr("batch")[0]
    assert batch.config.red == "sleep"


@pytest.mark.parametrize("backend", ["auto", "sync", "workers", "pipes"])
@pytest.mark.parametrize("in_list", [False, True])
def test_an_environment_instead_of_a_function_is_refused(backend: Any, in_list: bool) -> None:
    env: Any = [Checksummed, Checksummed()] if in_list else Checksummed()
    sentence = (
        "env must be a function that makes an environment, or an id; got an environment; "
        r"pass Checksummed or lambda: Checksummed\(...\) instead of Checksummed\(\)"
    )
    with pytest.raises(TypeError, match=sentence):
        make_vec(2, env=env, backend=backend)


def test_help_shows_every_setting_with_its_default() -> None:
    parameters = signature(make_vec).parameters
    for kind in (EnvSettings, PoolConfig):
        for setting in fields(kind):
            assert parameters[setting.name].default == setting.default, setting.name
    own = ("num_envs", "n_envs", "env", "backend", "autoreset", "copy")
    assert {*parameters} == {*own, *VEC_SETTINGS, "settings"}
    for name in parameters:
        assert f"        {name}: " in (make_vec.__doc__ or ""), name


def test_the_keywords_of_an_environment_are_its_settings() -> None:
    assert {*ENV_SETTINGS} == {f.name for f in fields(EnvSettings)} - {"autoreset", "threads"}
    assert {*VEC_SETTINGS} - {*ENV_SETTINGS} == {
        *(f.name for f in fields(PoolConfig) if f.name != "autoreset"), "statistics", "threads",
    }  # fmt: skip


def test_make_vec_hands_on_every_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["cagepool.envs.make"]  # the package has a function of this name
    monkeypatch.setattr(module, "NativeVectorEnv", lambda *_, **keywords: keywords)
    given = {name: object() for name in ENV_SETTINGS} | {"scenario": CAGE2, "threads": 7}
    received: Any = make_vec(2, **given, copy=False)  # type: ignore[call-overload]
    expected = {"autoreset": "next_step", "copy": False, "statistics": True, "scenario": (CAGE2,)}
    assert received == given | expected


@pytest.mark.parametrize("keywords", [{"num_envs": 4}, {"n_envs": 4}])
def test_the_number_of_environments_has_two_names(keywords: Any) -> None:
    assert make_vec(**keywords).num_envs == 4


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"num_envs": 4, "n_envs": 4}, "^num_envs must be given once, got num_envs and n_envs$"),
        ({}, "^num_envs, the number of environments, must be given, got none$"),
    ],
)
def test_the_number_of_environments_is_given_once(keywords: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        make_vec(**keywords)


def test_make_gives_one_game_without_wrappers() -> None:
    env = make(red="meander", max_steps=3, observation_dtype="uint8")
    assert type(env) is Cage2Env
    many = make_vec(1, red="meander", max_steps=3, observation_dtype="uint8", autoreset="disabled")
    assert_same(env.reset(seed=5)[0], many.reset(seed=5)[0][0])
    assert_same(env.step(7)[0], many.step([7])[0][0])
    with pytest.raises(TypeError, match="unknown setting max_step, did you mean max_steps"):
        make(max_step=5)  # type: ignore[call-arg]
    assert make(red_agent="sleep").batch.config.red == "sleep"  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("env", "text"),
    [
        (
            lambda: make_vec(3, red="mix", max_steps=30, green=True),
            "NativeVectorEnv(num_envs=3, red='mix', edition='2.1', max_steps=30, green=True)",
        ),
        (
            lambda: make_vec(2, max_steps=[1, 2], autoreset="same_step"),
            "NativeVectorEnv(num_envs=2, red='B_lineAgent', edition='2.1', max_steps=[1, 2], autoreset='same_step')",  # noqa: E501
        ),
        (
            lambda: make(order="reverse"),
            "Cage2Env(red='B_lineAgent', edition='2.1', max_steps=100, order='reverse')",
        ),
        (
            lambda: gym.make("cagepool/CAGE2-v0", edition="leaderboard", disable_env_checker=True),
            "<OrderEnforcing<Cage2Env(red='B_lineAgent', edition='leaderboard', max_steps=100)<cagepool/CAGE2-v0>>>",  # noqa: E501
        ),
    ],
)
def test_an_environment_shows_its_game(env: Any, text: str) -> None:
    assert str(env()) == text


def test_a_closed_environment_can_be_shown() -> None:
    env, envs = make(), make_vec(2)
    env.close()
    envs.close()
    assert repr(env) == "Cage2Env(closed)"
    assert repr(envs) == "NativeVectorEnv(closed)"


@pytest.mark.parametrize("backend", ["sync", "workers"])
def test_there_must_be_an_environment(backend: Any) -> None:
    with pytest.raises(ValueError, match="there must be at least 1 environment, got 0"):
        make_vec(0, env=Checksummed, backend=backend)
