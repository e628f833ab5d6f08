"""ONNX files of policies choose the actions of the policies, in ONNX Runtime over real games."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from cagepool.cli.main import run
from cagepool.evaluate import Trial
from cagepool.evaluate.rollout import game_seeds, start_games
from cagepool.policy.load import load_run
from cagepool.policy.native import NativeRuntime
from cagepool.policy.onnx import write_onnx
from cagepool.policy.policy import FEATURE_DEVIATION, FEATURE_MEAN, Policy, feature_encoder
from cagepool.sim.names import OFFICIAL_REDS
from cagepool.types import Arrays
from tests.evaluate.folders import make_run

GAMES = 20
ROUNDING = 1e-4  # of logits: the two runtimes sum products in different orders


def make_session(policy: Policy, path: Path) -> Any:
    write_onnx(policy, path)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def check_games(policy: Policy, session: Any, red: str, steps: int = 100) -> int:
    """Play games by ONNX Runtime beside the policy; returns the number of equal actions."""
    trial = Trial(episodes=GAMES, edition=policy.settings.env.edition)
    batch = start_games(trial, red, game_seeds(trial, red))
    policy.begin(GAMES)
    encoder = feature_encoder(policy.settings, GAMES)
    features = np.zeros((GAMES, encoder.size), np.float32)
    masks = np.ones((GAMES, encoder.n_choices), np.uint8)
    shapes = {one.name: one.shape for one in session.get_inputs()}
    state = np.zeros((GAMES, shapes["state"][1]), np.float32) if "state" in shapes else None
    compared = 0
    for _ in range(steps):
        encoder.encode(batch.observations, features, masks if "action_masks" in shapes else None)
        values = {"features": features, "action_masks": masks.astype(bool), "state": state}
        outputs = session.run(None, {name: values[name] for name in shapes})
        actions, logits, *memory = outputs
        state = memory[0] if memory else None
        played = policy.act(batch.observations)
        top = np.sort(logits, axis=1)[:, -2:]
        is_clear = top[:, 1] - top[:, 0] > ROUNDING
        np.testing.assert_array_equal(actions[is_clear], played[is_clear])
        compared += int(is_clear.sum())
        batch.step(played)
        encoder.update(played, batch.observations)
    return compared


@pytest.mark.parametrize("red", OFFICIAL_REDS)
@pytest.mark.parametrize("inputs", ["history", "belief"])
def test_an_onnx_file_chooses_the_actions_of_its_policy(
    inputs: str, red: str, tmp_path: Path
) -> None:
    policy = load_run("zoo:best-2.1" if inputs == "belief" else make_run(tmp_path / "run"))
    assert policy.settings.features.belief == (inputs == "belief")

    compared = check_games(policy, make_session(policy, tmp_path / "policy.onnx"), red)

    assert compared > 0.99 * GAMES * 100


@pytest.mark.parametrize(
    "settings",
    [{"action_masking": False}, {"activation": "relu"}, {"actions": "all", "clock": True}],
    ids=["without masks", "relu", "all actions"],
)
def test_settings_of_a_policy_are_part_of_its_file(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    policy = load_run(make_run(tmp_path / "run", **settings))
    session = make_session(policy, tmp_path / "policy.onnx")

    names = [one.name for one in session.get_inputs()]
    assert names == ["features", "action_masks"][: 2 if settings.get("action_masking", True) else 1]
    assert check_games(policy, session, "B_lineAgent", steps=30) > 0.9 * GAMES * 30


def test_the_normalization_of_features_is_part_of_the_file(tmp_path: Path) -> None:
    plain = load_run(make_run(tmp_path / "run"))
    assert isinstance(plain.runtime, NativeRuntime)
    size = feature_encoder(plain.settings, 1).size
    rng = np.random.default_rng(0)
    arrays: Arrays = {FEATURE_MEAN: rng.random(size), FEATURE_DEVIATION: 0.01 + rng.random(size)}
    for number, (weights, biases) in enumerate(plain.runtime.layers):
        arrays |= {f"actor.{2 * number}.weight": weights, f"actor.{2 * number}.bias": biases}
    policy = Policy(arrays, {})
    session = make_session(policy, tmp_path / "policy.onnx")

    rows = rng.random((50, size)).astype(np.float32)
    masks = np.ones((50, feature_encoder(plain.settings, 1).n_choices), np.bool_)
    _, logits = session.run(None, {"features": rows, "action_masks": masks})

    np.testing.assert_allclose(
        logits, policy.runtime.logits(policy._normalized(rows), None), atol=1e-3
    )


def test_evaluating_the_file_alone_names_the_folder_instead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_onnx(load_run("zoo:minutes"), tmp_path / "policy.onnx")

    assert run(["evaluate", str(tmp_path / "policy.onnx")]) == 2
    assert f"evaluate its folder, {tmp_path}, instead" in capsys.readouterr().err


OWN = """
import torch
from torch import nn
from cagepool.policy.networks import NetworkOutputs

class Plain(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.actor = nn.Linear(spec.features, spec.actions)
        self.critic = nn.Linear(spec.critic_features, 1)

    def forward(self, inputs):
        seen = inputs.critic_features
        values = None if seen is None else self.critic(seen)[..., 0]
        return NetworkOutputs(self.actor(inputs.features), values, inputs.state)

class Branching(Plain):
    def forward(self, inputs):
        outputs = super().forward(inputs)
        return outputs if inputs.features.sum() < 10.0 else outputs._replace(logits=-outputs.logits)
"""


def train(tmp_path: Path, network: str) -> Path:
    folder = tmp_path / network.replace(":", "-")
    settings = ("--total-episodes", "20", "--n-envs", "10", "--max-steps", "5", "--hidden", "8")
    assert run(["train", "--network", network, "--out", str(folder), *settings]) == 0
    return folder


@pytest.mark.soak
def test_other_networks_are_exported_by_pytorch_or_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_exported.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("gru", "own_exported:Plain"):
        policy = load_run(train(tmp_path, name), network=name if ":" in name else None)
        session = make_session(policy, tmp_path / "policy.onnx")
        assert check_games(policy, session, "B_lineAgent", steps=30) > 0
    branching = "own_exported:Branching"
    folder = train(tmp_path, branching)
    capsys.readouterr()

    assert run(["export", str(folder), "shared", "--network", branching, "--episodes", "2"]) == 2

    sentence = capsys.readouterr().err
    assert sentence.startswith(f"cagepool: network {branching} can't be exported to ONNX: ")
    assert sentence.count("\n") == 1
    assert not Path("shared").exists()
    sys.modules.pop("own_exported")
