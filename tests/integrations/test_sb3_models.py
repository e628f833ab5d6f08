"""Models that Stable-Baselines3 and sb3-contrib have saved, scored by the command line."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sb3_contrib
import stable_baselines3
from numpy.typing import ArrayLike

from cagepool.cli.main import run
from cagepool.evaluate import Trial, score_table
from cagepool.integrations import sb3, sb3_models
from cagepool.policy.defenders import Defender, GameBatch
from cagepool.sim.encoder import FeatureConfig
from cagepool.types import Int64s

Capture = pytest.CaptureFixture[str]
EPISODES = 3


def small_model(algorithm: Any, policy: str = "MlpPolicy", **settings: Any) -> Any:
    inputs: FeatureConfig | None = settings.pop("inputs", None)
    envs = sb3.make(2, inputs=inputs, max_steps=10)
    network = {"net_arch": [8]} | ({"lstm_hidden_size": 8} if "Lstm" in policy else {})
    return algorithm(policy, envs, seed=3, policy_kwargs=network, device="cpu", **settings)


def evaluated(capsys: Capture, path: Path, *flags: str) -> Any:
    arguments = ("evaluate", str(path), "--json", "--episodes", str(EPISODES), *flags)
    assert run(arguments) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        (stable_baselines3.PPO, {"n_steps": 8, "batch_size": 8}),
        (stable_baselines3.A2C, {}),
        (stable_baselines3.DQN, {"buffer_size": 10}),
        (sb3_contrib.MaskablePPO, {"n_steps": 8, "batch_size": 8}),
        (sb3_contrib.QRDQN, {"buffer_size": 10}),
        (sb3_contrib.TRPO, {"n_steps": 8, "batch_size": 8}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_saved_model_has_the_scores_of_the_model(
    tmp_path: Path, capsys: Capture, algorithm: Any, settings: dict[str, Any]
) -> None:
    model = small_model(algorithm, **settings)
    model.save(tmp_path / "model.zip")

    found = evaluated(capsys, tmp_path / "model.zip", "--trust-pickle")

    expected = score_table(sb3.defender(model), Trial(episodes=EPISODES, seed=153))
    assert found["name"] == "model.zip"
    assert [cell["mean"] for cell in found["scores"]] == [
        cell.mean for cell in expected.to_record().scores
    ]


def test_a_recurrent_model_keeps_its_state_within_an_episode(
    tmp_path: Path, capsys: Capture
) -> None:
    model = small_model(sb3_contrib.RecurrentPPO, "MlpLstmPolicy", n_steps=8, batch_size=8)
    model.save(tmp_path / "model.zip")

    class OneByOne(Defender):
        """Plays every game with a state of its own."""

        def begin(self, games: int | GameBatch) -> None:
            assert not isinstance(games, int)
            self.states: list[Any] = [None] * games.games

        def act(self, observations: ArrayLike) -> Int64s:
            chosen = np.zeros(len(self.states), np.int64)
            for game, row in enumerate(np.asarray(observations, np.float32)):
                start = np.array([self.states[game] is None])
                chosen[game], self.states[game] = model.predict(
                    row, self.states[game], episode_start=start, deterministic=True
                )
            return chosen

    found = evaluated(capsys, tmp_path / "model.zip", "--trust-pickle")

    expected = score_table(OneByOne(), Trial(episodes=EPISODES, seed=153))
    assert [cell["mean"] for cell in found["scores"]] == [
        cell.mean for cell in expected.to_record().scores
    ]


def test_a_model_is_loaded_only_if_its_pickles_are_trusted(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "model.zip").write_bytes(b"never opened")

    assert run(["evaluate", str(tmp_path / "model.zip")]) == 2
    assert "contains pickles" in capsys.readouterr().err


def test_a_file_that_is_no_model_is_refused(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "text.zip").write_text("text")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("data", "[]")

    for name in ("text.zip", "other.zip"):
        assert run(["evaluate", str(tmp_path / name), "--trust-pickle"]) == 2
        assert "is damaged, or not a model of Stable-Baselines3" in capsys.readouterr().err


def test_a_model_of_another_algorithm_or_with_other_inputs_is_refused(tmp_path: Path) -> None:
    featured = small_model(stable_baselines3.A2C, inputs=FeatureConfig())
    featured.save(tmp_path / "featured.zip")
    with zipfile.ZipFile(tmp_path / "sac.zip", "w") as archive:
        archive.writestr("data", json.dumps({"policy_class": {"__module__": "x.sac"}}))

    with pytest.raises(ValueError, match=r"among 145 actions from 52 values, .*featured.zip does"):
        sb3_models.load_model(tmp_path / "featured.zip")
    with pytest.raises(ValueError, match=r"RecurrentPPO, .*A2C; .*sac.zip is of another algorithm"):
        sb3_models.load_model(tmp_path / "sac.zip")
