"""The arrays that a batch writes: one table in the core, exact types, sentences that name them."""

from typing import Any

import numpy as np
import pytest

from cagepool import _core
from cagepool.scenarios import CAGE2, Layout
from cagepool.sim import Batch, dtypes
from cagepool.sim.scenario_tables import core_scenarios
from cagepool.types import Arrays

GAMES = 3


def outputs(**changed: Any) -> Arrays:
    arrays: Arrays = {}
    for name, types, fixed, condition in _core.CompiledBatch.output_fields():
        columns = fixed or _core.OBSERVATION_SIZE
        rows = 0 if condition == _core.OutputCondition.SAME_STEP_RESET else GAMES
        arrays[name] = np.zeros((rows, columns) if columns > 1 else rows, types[0])
    return arrays | changed


def make(arrays: Arrays, **changed: Any) -> _core.CompiledBatch:
    configs = np.zeros(GAMES, dtypes.GAME_CONFIG)
    configs["horizon"] = configs["reds"] = 1
    for field, value in changed.items():
        configs[field] = value
    layout = Layout.of([CAGE2])
    return _core.CompiledBatch(
        **core_scenarios([CAGE2], layout),
        draws_scenarios=False,
        configs=dtypes.as_bytes(configs),
        outputs=arrays,
        autoreset=_core.Autoreset.NEXT_STEP,
        knowledge=_core.Knowledge.TRUE,
        definition=_core.Definition.HOST,
        alignment_lambda=0.0,
        threads=1,
    )


def test_the_batch_explains_every_output_of_the_core() -> None:
    names = [name for name, *_ in _core.CompiledBatch.output_fields()]
    assert {*names, "scenario_ids"} == Batch.__annotations__.keys()
    assert names == [name for name, *_ in _core.TableBatch.output_fields()]
    make(outputs())


@pytest.mark.parametrize(
    ("changed", "error", "sentence"),
    [
        ({"rewards": np.zeros(3, np.float32)}, TypeError, "rewards must be .* type f8 and rank 1"),
        ({"rewards": np.zeros((3, 1))}, TypeError, "rewards must be .* got type d and rank 2"),
        ({"rewards": np.zeros(6)[::2]}, TypeError, "rewards must be a writable C-contiguous array"),
        ({"rewards": np.frombuffer(bytes(24))}, TypeError, "rewards must be a writable"),
        ({"rewards": [0.0] * 3}, TypeError, "rewards must be a writable C-contiguous array, got"),
        ({"rewards": np.zeros(4)}, ValueError, "rewards must have 3 rows, got 4"),
        (
            {"rewards": np.zeros(25, np.uint8)[1:].view(np.float64)},
            TypeError,
            "rewards must be an aligned array",
        ),
        ({"observations": np.zeros((3, 52))}, TypeError, "observations must be .* type f4"),
        (
            {"observations": np.zeros((3, 51), np.float32)},
            ValueError,
            "observations must have 52 columns, got 51",
        ),
        ({"moves": np.zeros((3, 9), np.uint8)}, ValueError, "moves must have 12 columns, got 9"),
        ({"orders": np.full(3, 120, np.uint8)}, ValueError, "the order of game 0 must be below"),
        (
            {"final_observations": np.zeros((3, 52), np.float32)},
            ValueError,
            "final_observations must have 0 rows, got 3",
        ),
        ({"prizes": np.zeros(3)}, ValueError, "outputs must be arrays of a batch, got `prizes`"),
    ],
    ids=[
        "float32",
        "rank",
        "stride",
        "read-only",
        "list",
        "rows",
        "unaligned",
        "float64 observations",
        "narrow",
        "struct",
        "order",
        "not needed",
        "unknown",
    ],
)
def test_an_array_that_does_not_fit_is_named(
    changed: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        make(outputs(**changed))


def test_a_missing_array_is_named() -> None:
    arrays = outputs()
    del arrays["moves"]
    with pytest.raises(ValueError, match="outputs must have an array `moves`"):
        make(arrays)


@pytest.mark.parametrize(
    ("field", "value"), [("horizon", 0), ("reds", 0), ("reds", 16), ("edition", 2), ("green", 2)]
)
def test_a_configuration_that_cannot_be_played_is_refused(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"the {field} of game 0 must be .*, got {value}"):
        make(outputs(), **{field: value})
