"""`PoolVecEnv` behaves like Stable-Baselines3's own DummyVecEnv."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any, cast

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from cagepool.envs import Cage2Env
from cagepool.envs.make import Backend
from cagepool.integrations import sb3
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.encoder import FeatureConfig, FeatureEncoder
from cagepool.sim.names import action_index
from tests.envs import reward_functions
from tests.envs.contract import HORIZON
from tests.envs.workers.toy_envs import Faulty, ModuleReporter, Sampler
from tests.scenarios.files import sample

BACKENDS: tuple[Backend, ...] = ("native", "workers", "sync", "pipes")
HORIZONS = [4, 5, HORIZON]


def same(ours: Any, theirs: Any) -> bool:
    """Whether two observations or infos, possibly nested, are equal."""
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in theirs)
    return bool(np.array_equal(ours, theirs))


def play_both(ours: sb3.PoolVecEnv, theirs: DummyVecEnv, steps: int) -> None:
    """Play the same actions in both and compare all results."""
    ours.action_space.seed(0)
    assert list(ours.seed(5)) == list(theirs.seed(5))
    assert same(ours.reset(), theirs.reset())
    for _ in range(steps):
        chosen = np.array([ours.action_space.sample() for _ in range(ours.num_envs)])
        our_step, their_step = ours.step(chosen), theirs.step(chosen)
        for info, done in zip(our_step[3], our_step[2], strict=True):
            assert ("episode" in info) == done
            info.pop("episode", None)
        assert all(map(same, our_step[:3], their_step[:3]))
        assert our_step[1].dtype == their_step[1].dtype
        assert all(map(same, our_step[3], their_step[3]))
        assert all(map(same, ours.reset_infos, theirs.reset_infos))


@pytest.mark.parametrize("observation", ["flat", "graph"])
def test_scenarios_of_ones_own_are_those_of_their_dummy(observation: Any) -> None:
    settings: Any = {"scenario": sample("tiny"), "observation": observation, "max_steps": HORIZON}
    theirs = DummyVecEnv([lambda: Cage2Env(**settings)] * 3)
    play_both(sb3.make(3, **settings), theirs, 2 * HORIZON)


@pytest.mark.parametrize("backend", ["native", "sync"])
def test_features_of_other_scenarios_are_refused(backend: Any) -> None:
    inputs: Any = {"inputs": FeatureConfig(), "scenario": sample("other_links")}
    with pytest.raises(ValueError, match="inputs need CAGE-2, got another scenario"):
        sb3.make(2, backend=backend, **inputs)


def test_their_models_learn_on_graphs_and_on_several_scenarios() -> None:
    scenarios: Any = [sample("tiny"), sample("flat")]
    small: Any = {"n_steps": 8, "batch_size": 16, "n_epochs": 1, "device": "cpu"}
    graphs = sb3.make(2, scenario=scenarios, observation="graph")
    PPO("MultiInputPolicy", graphs, **small).learn(16)
    flat = sb3.make(2, scenario=scenarios, scenario_per="episode")
    MaskablePPO("MlpPolicy", flat, **small).learn(16)


def test_a_vec_env_has_its_own_copies() -> None:
    with pytest.raises(TypeError, match="a VecEnv has its own copy, got copy="):
        sb3.make(2, **cast("Any", {"copy": False}))


def test_the_number_of_environments_has_two_names() -> None:
    assert sb3.make(num_envs=2).num_envs == sb3.make(n_envs=2).num_envs == 2
    with pytest.raises(TypeError, match="num_envs must be given once, got num_envs and n_envs"):
        sb3.make(2, n_envs=2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_reward_function_and_moves_reach_the_infos(backend: Backend) -> None:
    settings: dict[str, Any] = {"reward": reward_functions.mixed, "moves": True}
    theirs = DummyVecEnv([partial(Cage2Env, max_steps=most, **settings) for most in HORIZONS])
    ours = sb3.make(3, backend=backend, max_steps=HORIZONS, **settings)
    play_both(ours, theirs, 12)
    ours.close()


def test_the_last_info_has_the_return_of_the_function_and_the_official_one() -> None:
    envs = sb3.make(2, max_steps=20, reward=reward_functions.twice)
    envs.seed(0)
    envs.reset()
    for _ in range(20):
        *_, infos = envs.step(np.zeros(2, int))
    for info in infos:
        assert info["official_return"] < 0
        assert info["episode"]["r"] == pytest.approx(2 * info["official_return"])


@pytest.mark.parametrize("backend", ["native", "sync"])
def test_an_evaluation_finds_the_statistics_of_episodes(backend: Backend) -> None:
    envs = sb3.make(2, max_steps=5, backend=backend)
    assert envs.env_is_wrapped(Monitor) == [True, True]
    assert envs.env_is_wrapped(Monitor, indices=[1]) == [True]
    model = PPO("MlpPolicy", envs, n_steps=4, batch_size=8)
    _, lengths = evaluate_policy(model, envs, 4, return_episode_rewards=True)  # warns otherwise
    assert lengths == [5] * 4


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_plays_as_their_own_vector_environment(backend: Backend) -> None:
    settings: dict[str, Any] = {"red": "RedMeanderAgent", "order": "reverse"}
    theirs = DummyVecEnv([partial(Cage2Env, max_steps=most, **settings) for most in HORIZONS])
    ours = sb3.make(3, backend=backend, max_steps=HORIZONS, **settings)

    play_both(ours, theirs, 12)

    ours.close()
    ours.close()


@pytest.mark.parametrize("maker", [partial(gym.make, "CartPole-v1"), Sampler], ids=["box", "infos"])
def test_any_environment_is_played_as_in_their_own(maker: Callable[[], Any]) -> None:
    ours = sb3.make(3, env=maker, backend="workers", workers=2)
    play_both(ours, DummyVecEnv([maker] * 3), 60)
    ours.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_single_environments_are_asked_and_told_by_number(backend: Backend) -> None:
    envs = sb3.make(3, backend=backend)
    envs.seed(0)
    envs.reset()
    decoy = action_index("DecoyTomcat User2")
    envs.step(np.array([0, decoy, 0]))

    assert [bool(mask[decoy]) for mask in envs.env_method("action_masks")] == [True, False, True]
    assert not envs.env_method("action_masks", indices=1)[0][decoy]
    before = envs.env_method("save")
    envs.env_method("reseed", 9, indices=[1])
    kept = [old == new for old, new in zip(before, envs.env_method("save"), strict=True)]
    assert kept == [True, False, True]
    envs.set_attr("colour", "red", indices=[2])
    assert envs.get_attr("colour", [-1]) == ["red"]
    with pytest.raises(IndexError):
        envs.get_attr("colour", [3])
    assert envs.has_attr("true_state")
    assert not envs.has_attr("colour")
    with pytest.raises(AttributeError, match="colour"):
        envs.get_attr("colour")
    envs.step(np.zeros(3, np.int64))  # still works after the error
    envs.close()


def test_wrappers_are_found_in_workers_too() -> None:
    for backend in ("workers", "sync"):
        envs = sb3.make(2, env="CartPole-v1", backend=backend)
        assert envs.env_is_wrapped(gym.wrappers.TimeLimit) == [True, True]
        assert envs.env_is_wrapped(gym.wrappers.ClipAction, indices=0) == [False]
        envs.close()
    assert sb3.make(2).env_is_wrapped(gym.wrappers.TimeLimit) == [False, False]


def test_workers_import_neither_torch_nor_stable_baselines() -> None:
    with closing(sb3.make(2, env=ModuleReporter, backend="workers", workers=1)) as envs:
        for library in ("torch", "stable_baselines3"):
            assert envs.env_method("has_imported", library, indices=[0]) == [False]


def test_each_environment_is_reset_with_its_own_options() -> None:
    class Reader(Sampler):
        def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            return super().reset(seed=seed)[0], {"given": (options or {}).get("start", -1)}

    envs = sb3.make(2, env=Reader, backend="sync")
    envs.set_options([{"start": 1}, {}])
    envs.reset()
    assert [info["given"] for info in envs.reset_infos] == [1, -1]
    envs.reset()
    assert [info["given"] for info in envs.reset_infos] == [-1, -1]


def test_pictures_are_those_of_the_games() -> None:
    envs = sb3.make(2, render_mode="ansi")
    envs.reset()
    envs.render()
    pictures = envs.get_images()
    assert len(pictures) == 2
    assert "User0" in pictures[0]


def test_an_environment_that_is_made_anew_ends_its_episode() -> None:
    maker = partial(Faulty, "exception")
    envs = sb3.make(2, env=maker, backend="workers", on_fault="restart")
    envs.reset()
    _, _, dones, infos = envs.step(np.array([0, Faulty.FAIL]))
    assert dones.tolist() == [False, True]
    assert infos[1]["restarted"]
    assert infos[1]["TimeLimit.truncated"]
    assert "terminal_observation" in infos[1]
    envs.close()


def test_their_monitor_counts_what_we_count() -> None:
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
        envs = VecMonitor(sb3.make(4, max_steps=6))
    plain = sb3.make(4, max_steps=6)
    for one in (envs, plain):
        one.seed(3)
        one.reset()
    for _ in range(6):
        *_, infos = envs.step(np.full(4, 132))
        *_, expected = plain.step(np.full(4, 132))
    for theirs, ours in zip(infos, expected, strict=True):
        # VecMonitor sums in single precision.
        assert theirs["episode"]["r"] == pytest.approx(ours["episode"]["r"], rel=1e-6)
        assert theirs["episode"]["l"] == ours["episode"]["l"] == 6


def test_infos_belong_to_one_environment_and_one_step() -> None:
    envs = sb3.make(3)
    envs.reset()
    *_, first = envs.step(np.zeros(3, np.int64))
    first[0]["mine"] = 1
    *_, second = envs.step(np.zeros(3, np.int64))
    assert not any("mine" in info for info in (*first[1:], *second))


def test_their_checker_accepts_the_single_game() -> None:
    check_env(Cage2Env(), warn=True)


def learned(model: Any, batches: int) -> tuple[float, float]:
    """Mean returns of the first episodes and of the last ones."""
    steps = model.n_steps * model.n_envs
    model.learn(steps)
    first = np.mean([episode["r"] for episode in model.ep_info_buffer])
    model.learn(steps * batches, reset_num_timesteps=False)
    return float(first), float(np.mean([episode["r"] for episode in model.ep_info_buffer]))


@pytest.fixture
def settings() -> dict[str, Any]:
    torch.set_num_threads(1)
    return {
        "policy": "MlpPolicy",
        "n_steps": 30,
        "batch_size": 480,
        "n_epochs": 4,
        "learning_rate": 2e-3,
        "gamma": 0.95,
        "seed": 0,
        "device": "cpu",
    }


def test_their_ppo_learns_to_defend(settings: dict[str, Any]) -> None:
    envs = VecNormalize(sb3.make(64, max_steps=30), norm_obs=False)
    first, last = learned(PPO(env=envs, **settings), 15)
    assert last > first / 2, "the loss has not been halved"


def test_maskable_ppo_learns_to_defend_with_our_inputs(settings: dict[str, Any]) -> None:
    envs = sb3.make(64, max_steps=30, inputs=FeatureConfig(actions="core"))
    model = MaskablePPO(env=envs, **settings)
    first, last = learned(model, 15)
    assert last > first / 2, "the loss has not been halved"


@pytest.mark.parametrize("inputs", [None, FeatureConfig(actions="core")], ids=["plain", "wise"])
@pytest.mark.parametrize("algorithm", [PPO, MaskablePPO])
def test_a_model_defends_as_it_plays(
    algorithm: Any, inputs: FeatureConfig | None, settings: dict[str, Any]
) -> None:
    made = partial(sb3.make, max_steps=30, red="RedMeanderAgent", inputs=inputs)
    model, envs = algorithm(env=made(64), **settings), made(1)
    batch = Batch(1, BatchConfig(red="RedMeanderAgent", max_steps=30))
    batch.reset(np.array([7], np.uint64))
    defender = sb3.defender(model, inputs, max_steps=30)
    defender.begin(batch)
    envs.seed(7)
    rows = envs.reset()
    for _ in range(30):
        masks = {"action_masks": envs.env_method("action_masks")[0]}
        allowed = masks if algorithm is MaskablePPO else {}
        choice, _ = model.predict(rows, deterministic=True, **allowed)
        rows, rewards, *_ = envs.step(choice)
        batch.step(defender.act(batch.observations))
        assert batch.rewards[0] == pytest.approx(
            rewards[0]
        )  # SB3's rewards are in single precision
    assert batch.episode_returns[0] < 0


def test_inputs_and_masks_are_those_of_the_trainer() -> None:
    config = FeatureConfig(actions="possible")
    envs = sb3.make(1, max_steps=9, red="RedMeanderAgent", inputs=config)
    game, inputs = (
        Cage2Env(max_steps=9, red="RedMeanderAgent"),
        FeatureEncoder(config, 1, horizon=9),
    )
    rng = np.random.default_rng(0)

    def expected(seen: Any, played: int | None) -> tuple[Any, Any]:
        if played is None:
            inputs.reset()
        else:
            inputs.update(np.array([played]), seen[None])
        row, mask = (
            np.empty((1, inputs.size), np.float32),
            np.empty((1, inputs.n_choices), np.uint8),
        )
        inputs.encode(seen[None], row, mask)
        return row, mask

    envs.seed(2)
    row, mask = expected(game.reset(seed=2)[0], None)
    assert same(envs.reset(), row)
    for _ in range(20):
        assert same(envs.env_method("action_masks")[0], mask[0])
        choice = rng.choice(np.flatnonzero(mask[0]))
        rows, _, dones, infos = envs.step(np.array([choice]))
        seen, *_ = game.step(inputs.action_indices[choice])
        row, mask = expected(seen, int(inputs.action_indices[choice]))
        if dones[0]:
            assert same(infos[0]["terminal_observation"], row[0])
            row, mask = expected(game.reset()[0], None)
        assert same(rows, row)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            partial(sb3.make, 1, env="CartPole-v1"),
            r"CAGE-2's 52 values, got observations of \(4,\)",
        ),
        (partial(sb3.make, 1, max_steps=0), "max_steps must be a whole number from 1"),
        (partial(sb3.make, 1), "order_input needs native games with an order"),
    ],
)
def test_inputs_need_the_game(make: Callable[..., Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make(inputs=FeatureConfig(order_input=True))
