"""Policies with recurrent and own networks: played as trained, and only if the user names them."""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import cagepool
from cagepool import runs
from cagepool.cli.main import run as run_command
from cagepool.integrations import CybORGAgent
from cagepool.policy.load import load_run as load
from cagepool.policy.networks import SIZES, TorchRuntime
from cagepool.policy.policy import Policy
from cagepool.train.collectors import LocalCollector
from cagepool.train.ppo import Trainer
from tests.evaluate.folders import make_run
from tests.train.short_runs import SHORT, train_run

OWN = '''
"""A network of a user."""

import torch
from torch import nn

from cagepool.policy.networks import NetworkInputs, NetworkOutputs, NetworkSpec


class Shared(nn.Module):
    """One trunk for actor and critic, with an LSTM whose two states are one tensor."""

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__()
        self.width = spec.hidden[-1]
        self.state_size = 2 * self.width
        self.trunk = nn.LSTM(spec.features, self.width)
        self.actor = nn.Linear(self.width, spec.actions)
        self.critic = nn.Linear(self.width, 1)

    def forward(self, inputs: NetworkInputs) -> NetworkOutputs:
        state = tuple(part[None].contiguous() for part in inputs.state.chunk(2, -1))
        memory, state = self.trunk(inputs.features, state)
        values = self.critic(memory)[..., 0]
        return NetworkOutputs(self.actor(memory), values, torch.cat(state, -1)[0])
'''
SETTINGS = SHORT.with_settings(total_episodes=40, threads=1)


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module outside of the package and of the tests."""
    (tmp_path / "someones_networks.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "someones_networks", raising=False)
    return "someones_networks:Shared"


@pytest.mark.parametrize("is_own", [False, True], ids=["gru", "own"])
def test_a_policy_chooses_as_in_the_rollout_of_its_training(
    tmp_path: Path, own_module: str, is_own: bool
) -> None:
    network = own_module if is_own else "gru"
    config = SETTINGS.with_settings(network=network, update_steps=30, n_envs=5)
    path = train_run(tmp_path / "run", config)
    policy = load(path, "last", network=network if is_own else None)
    assert isinstance(policy.runtime, TorchRuntime)
    with Trainer(config) as trainer:
        for _ in trainer.updates():
            pass
        assert isinstance(trainer.collector, LocalCollector)
        actor = trainer.collector.worker.actor
        actor.load_weights(trainer.weights())
    rng = np.random.default_rng(0)
    observations = rng.integers(0, 2, (12, 5, 52)).astype(np.float32)
    policy.begin(5)
    actor.reset(np.arange(5))
    for step, rows in enumerate(observations):
        logits = policy.logits(rows)
        expected = actor.logits(policy._rows, policy._masks)
        allowed = logits > -1e29
        np.testing.assert_array_equal(logits[allowed], expected[allowed])
        if step == 6:
            policy.reset([1, 3])
            actor.reset(np.array([1, 3]))


def test_a_run_with_an_own_network_is_trained_resumed_and_scored(
    tmp_path: Path, own_module: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    sizes = ["--n-envs", "5", "--max-steps", "9", "--update-steps", "13", "--hidden", "8"]
    evaluations = ["--n-evals", "1", "--n-eval-episodes", "2", "--threads", "1"]
    command = ["train", "--out", str(path), "--network", own_module, "--total-episodes", "20"]
    assert run_command([*command, *sizes, *evaluations]) == 0
    capfd.readouterr()

    assert run_command(["train", "--resume", str(path)]) != 0
    assert f"add --network {own_module}" in capfd.readouterr().err
    assert run_command(["train", "--resume", str(path), "--network", own_module]) == 0

    assert run_command(["evaluate", str(path), "--episodes", "2"]) != 0
    assert f"names code to be called, {own_module}" in capfd.readouterr().err
    assert run_command(["evaluate", str(path), "--episodes", "2", "--network", own_module]) == 0

    with pytest.raises(ValueError, match="names code to be called"):
        cagepool.load(path)
    agent = CybORGAgent(path, network=own_module)
    assert 0 <= agent.get_action(np.zeros(52, np.float32), 145) < 145


def set_network(path: Path, network: str) -> None:
    """Change the settings of a run as a stranger could."""
    config = path / runs.CONFIG
    content = json.loads(config.read_text(encoding="utf-8"))
    content["settings"]["ppo"]["network"] = network
    config.write_text(json.dumps(content), encoding="utf-8")


def test_a_foreign_module_is_not_even_imported(tmp_path: Path, own_module: str) -> None:
    path = make_run(tmp_path / "run")
    set_network(path, own_module)
    with pytest.raises(ValueError, match="if you trust it, name it too"):
        load(path)
    with pytest.raises(ValueError, match=r"the network of .* is someones_networks:Shared, got gru"):
        load(path, network="gru")
    assert "someones_networks" not in sys.modules


def test_a_run_with_a_recurrent_network_is_scored_by_the_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = train_run(tmp_path / "run", SETTINGS.with_settings(network="gru"))
    assert run_command(["evaluate", str(path), "--episodes", "2"]) == 0
    assert "RedMeanderAgent" in capfd.readouterr().out


def test_without_torch_the_error_says_what_to_install(tmp_path: Path) -> None:
    path = train_run(tmp_path / "run", SETTINGS.with_settings(network="gru"))
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'torch' else find(name, *rest)\n"
        "import cagepool\n"
        f"cagepool.load({str(path)!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "a policy with network gru needs torch: pip install torch" in done.stderr


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({SIZES: np.array([10**9, 5, 9])}, r"must have shape \(48, 1000000000\), got"),
        ({SIZES: np.array([5, 5])}, "there must be three network.sizes"),
        ({"actor.bias": np.full(1, np.nan, np.float32)}, "actor.bias must have shape"),
    ],
    ids=["huge", "two", "bias"],
)
def test_a_damaged_policy_is_one_sentence(change: dict[str, NDArray[Any]], sentence: str) -> None:
    with Trainer(SETTINGS.with_settings(network="gru")) as trainer:
        arrays = trainer.weights()
    config = SETTINGS.with_settings(network="gru").as_dict()
    with pytest.raises(ValueError, match=sentence):
        Policy(arrays | change, config)


def test_a_recurrent_policy_is_copied_and_restored_with_its_memory(tmp_path: Path) -> None:
    policy = load(train_run(tmp_path / "run", SETTINGS.with_settings(network="gru")), "last")
    observations = np.random.default_rng(0).integers(0, 2, (8, 5, 52)).astype(np.float32)
    policy.begin(5)
    for rows in observations[:4]:
        policy.act(rows)
    state, copied, threads = policy.state(), copy.deepcopy(policy), torch.get_num_threads()

    first = [policy.logits(rows) for rows in observations[4:]]
    policy.restore(state)

    for rows, expected in zip(observations[4:], first, strict=True):
        np.testing.assert_array_equal(policy.logits(rows), expected)
        np.testing.assert_array_equal(copied.logits(rows), expected)
    assert state["network_state"].any()
    assert torch.get_num_threads() == threads
