"""Policies in ONNX files that PyTorch has exported."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cagepool.cli.main import run
from cagepool.evaluate import Trial
from cagepool.evaluate.rollout import episode_totals
from cagepool.policy.defenders import FunctionDefender
from cagepool.policy.load import load
from cagepool.types import Bools, Float32s, Float64s
from tests.cli.command import python
from tests.test_optional import COMMAND, WITHOUT

FEW = Trial(episodes=20, max_steps=30, seed=3)
ROWS = {0: torch.export.Dim("rows")}


class Network(nn.Module):
    """Logits of all actions; -1e9 where a mask is given and false."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.linear = nn.Linear(52, 145)

    def forward(self, observations: Tensor, action_masks: Tensor | None = None) -> Tensor:
        logits: Tensor = self.linear(observations)
        return logits if action_masks is None else logits.masked_fill(~action_masks, -1e9)


class Greedy(Network):
    """Actions instead of logits."""

    def forward(self, observations: Tensor, action_masks: Tensor | None = None) -> Tensor:
        return super().forward(observations, action_masks).argmax(1)


def export(network: nn.Module, path: Path, *inputs: Tensor, is_fixed: bool = False) -> Path:
    shapes = None if is_fixed else tuple(ROWS for _ in inputs)
    torch.onnx.export(
        network.eval(), inputs, str(path), dynamo=True, dynamic_shapes=shapes, verbose=False
    )
    return path


def totals_of(name: str) -> Float64s:
    return episode_totals(load(name), FEW, "B_lineAgent")


def expected_totals(network: nn.Module, *, masked: bool) -> Float64s:
    def policy(observations: Float32s, action_masks: Bools) -> Float32s:
        masks = (torch.from_numpy(action_masks),) if masked else ()
        with torch.no_grad():
            output: Float32s = network(torch.from_numpy(observations), *masks).numpy()
            return output

    return episode_totals(FunctionDefender(policy, "torch"), FEW, "B_lineAgent")


# Of the exporter of PyTorch.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:# The axis name:UserWarning"
)


@pytest.mark.parametrize("network", [Network(), Greedy()], ids=["logits", "actions"])
@pytest.mark.parametrize("masked", [False, True])
def test_an_exported_network_plays_as_in_pytorch(
    tmp_path: Path, network: nn.Module, masked: bool
) -> None:
    inputs = (torch.zeros(3, 52), *([torch.ones(3, 145, dtype=torch.bool)] if masked else []))
    file = export(network, tmp_path / "policy.onnx", *inputs)

    found = load(str(file))

    assert (found.name, found.kind, found.run) == ("policy.onnx", "policy", None)
    np.testing.assert_array_equal(totals_of(str(file)), expected_totals(network, masked=masked))


@pytest.mark.parametrize("rows", [1, 3])
def test_a_file_with_a_fixed_number_of_rows_plays_too(tmp_path: Path, rows: int) -> None:
    network = Network()
    file = export(network, tmp_path / "policy.onnx", torch.zeros(rows, 52), is_fixed=True)

    np.testing.assert_array_equal(totals_of(str(file)), expected_totals(network, masked=False))


def test_a_file_with_other_inputs_is_refused(tmp_path: Path) -> None:
    file = export(nn.Linear(7, 145), tmp_path / "seven.onnx", torch.zeros(2, 7))

    with pytest.raises(ValueError, match=r"must be observations, \(N, 52\).* has .*, 7\]"):
        load(str(file))


def test_a_damaged_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policy.onnx"
    file.write_bytes(b"no model")

    assert run(["evaluate", str(file)]) == 2
    assert f"{file} is damaged, or not an ONNX file" in capsys.readouterr().err


def test_the_runtime_is_asked_for_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "policy.onnx"
    file.write_bytes(b"no model")

    done = python("-c", WITHOUT.format(library="onnxruntime") + COMMAND, "evaluate", str(file))

    remedy = "pip install onnxruntime, or install cagepool with its extra `onnx`"
    sentence = f"an ONNX file needs onnxruntime: {remedy}"
    assert (done.returncode, done.stderr) == (2, f"cagepool: {sentence}\n")
