"""`check_in_space` agrees with `Space.contains` and says what is wrong."""

import warnings
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from cagepool.envs.spaces import check_in_space
from tests.envs.workers.toy_envs import SPACES

BOX = spaces.Box(-1, 1, (2, 3), np.float32)
NESTED = spaces.Dict({"a": spaces.Tuple((spaces.Discrete(3), BOX))})


def is_accepted(space: spaces.Space[Any], value: Any) -> bool:
    try:
        check_in_space("it", space, value)
    except (TypeError, ValueError):
        return False
    return True


def contains(space: spaces.Space[Any], value: Any) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium's, that a list is cast
        try:
            return space.contains(value)
        except (TypeError, ValueError, OverflowError):  # of NumPy, not caught by old Gymnasium
            return False


ODD = [None, 1, -7, 0.5, "text", [0.5, 0.5, 2.0], (1, 2), {}, {"a": 1}, np.nan, np.zeros(3)]


@pytest.mark.parametrize("name", SPACES)
def test_it_accepts_what_the_space_contains(name: str) -> None:
    space = deepcopy(SPACES[name])
    space.seed(0)
    for _ in range(10):
        assert is_accepted(space, space.sample())
    for value in [*map(first_sample, SPACES.values()), *ODD]:
        assert is_accepted(space, value) == contains(space, value)


def first_sample(space: spaces.Space[Any]) -> Any:
    space = deepcopy(space)
    space.seed(0)
    return space.sample()


WRONG: dict[str, tuple[spaces.Space[Any], Any, str]] = {
    "dtype": (BOX, np.zeros((2, 3)), "it must have dtype float32, got float64"),
    "shape": (BOX, np.zeros(3, np.float32), r"it must have shape \(2, 3\), got \(3,\)"),
    "bound": (
        BOX,
        np.array([[0, 0, 0], [0, 7, 8]], np.float32),
        r"it\[1, 1\] must be from -1.0 to 1.0, got 7.0, and 1 more values outside",
    ),
    "nan": (
        spaces.Box(0, 1, ()),
        np.array(np.nan, np.float32),
        "it must be from 0.0 to 1.0, got nan",
    ),
    "text": (BOX, "text", "it must be an array of float32, got 'text'"),
    "number": (spaces.Discrete(3), 3, r"it must be in Discrete\(3\), got 3 \(int\)"),
    "inside": (NESTED, {"a": (4, np.zeros((2, 3), np.float32))}, r"it\['a'\]\[0\] must be in"),
    "keys": (NESTED, {"b": 1}, r"it must be a dict of \['a'\], got \['b'\]"),
    "length": (NESTED, {"a": (1,)}, r"it\['a'\] must be a tuple of 2 values, got 1 values"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_outside_gets_a_sentence(fault: str) -> None:
    space, value, words = WRONG[fault]
    with pytest.raises(ValueError, match=words):
        check_in_space("it", space, value)
