"""RLlib checkpoints are evaluated like run folders."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module import MeanStdFilter
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from cagepool.cli import main
from cagepool.evaluate.rollout import Trial, play_steps
from cagepool.integrations.rllib import MODULE_FOLDER, load_checkpoint, ppo_config
from cagepool.sim import Batch, BatchConfig

GAMES = 3
SEED = 5

pytestmark = [
    pytest.mark.ray,
    pytest.mark.usefixtures("ray_here"),
    pytest.mark.filterwarnings(  # RLlib's own, of its second runner in a process
        "ignore:.*Overriding environment rllib-single-agent-env-v0"
    ),
]


def saved(config: PPOConfig, folder: Path) -> Path:
    algorithm = config.build_algo()
    algorithm.save_to_path(folder)
    algorithm.stop()
    return folder


@pytest.fixture(scope="module")
def checkpoint(ray_here: None, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001
    folder = tmp_path_factory.mktemp("rllib") / "mine"
    return saved(ppo_config(0, 1, edition="leaderboard", order="critical_first"), folder)


@pytest.mark.soak
@pytest.mark.parametrize("use_lstm", [False, True], ids=["plain", "lstm"])
def test_a_checkpoint_plays_as_its_module_did_in_rllib(use_lstm: bool, tmp_path: Path) -> None:
    config = ppo_config(0, GAMES, seed=SEED, max_steps=30)
    if use_lstm:
        config.rl_module(model_config=DefaultModelConfig(use_lstm=True, vf_share_layers=False))
    algorithm = config.build_algo()
    episodes = algorithm.env_runner.sample(num_episodes=GAMES, explore=False)
    algorithm.save_to_path(tmp_path)
    algorithm.stop()

    batch = Batch(GAMES, BatchConfig(max_steps=30, autoreset="disabled"))
    batch.reset(np.random.SeedSequence(SEED).generate_state(GAMES).astype(np.uint64))
    *_, (_, totals) = play_steps(load_checkpoint(tmp_path), Trial(max_steps=30), batch)

    assert np.round([one.get_return() for one in episodes], 1).tolist() == totals.tolist()


def test_the_official_table_is_played_in_the_edition_of_the_training(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(checkpoint.rglob("*"))

    code = main.run(["evaluate", str(checkpoint), "--episodes", "4", "--trust-pickle"])

    printed, errors = capsys.readouterr()
    assert (code, errors) == (0, "")
    assert printed.startswith("mine, edition leaderboard, 4 episodes against each red, seed 153")
    assert "compliance with the order critical_first" in printed
    assert sorted(checkpoint.rglob("*")) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / MODULE_FOLDER / "module_state.pkl").unlink(),
        lambda folder: (folder / MODULE_FOLDER / "module_state.pkl").write_bytes(b"no pickle"),
        lambda folder: (folder / MODULE_FOLDER / "class_and_ctor_args.pkl").write_bytes(b""),
        lambda folder: (folder / "class_and_ctor_args.pkl").write_bytes(b"\x80\x04."),
        lambda folder: shutil.rmtree(folder / "learner_group"),
    ],
    ids=["no weights", "bad weights", "empty", "bad settings", "no module"],
)
def test_a_damaged_checkpoint_is_refused_in_one_sentence(
    damage: Callable[[Path], object],
    checkpoint: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(checkpoint, folder)
    damage(folder)

    code = main.run(["evaluate", str(folder), "--trust-pickle"])

    printed, errors = capsys.readouterr()
    assert (code, printed) == (2, "")
    assert errors.startswith(f"cagepool: {folder} is damaged, or not a checkpoint of RLlib's: ")
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (
            lambda: PPOConfig().environment("CartPole-v1").env_runners(num_env_runners=0),
            "a policy must be one for CAGE-2, that of .* plays Discrete",
        ),
        (
            lambda: ppo_config(0, 1).env_runners(env_to_module_connector=_filter),
            "a policy must see what blue sees, that of .* has connectors in between",
        ),
    ],
    ids=["another game", "connectors"],
)
def test_a_policy_that_cannot_play_as_it_is_is_refused(
    config: Callable[[], PPOConfig], sentence: str, tmp_path: Path
) -> None:
    folder = saved(config(), tmp_path)

    with pytest.raises(ValueError, match=sentence):
        load_checkpoint(folder)


def _filter(*_: Any) -> Any:
    return MeanStdFilter()
