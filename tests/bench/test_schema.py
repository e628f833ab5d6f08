"""Files of bench results: one model for writing and reading."""

import json
from pathlib import Path
from typing import Any

import pytest

from cagepool.bench.schema import Measurement, find, read_result, split_settings, write_result
from tests.bench.results import result, row


def test_a_written_result_is_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    original = result(row([1, 2, 3], reference=[0.1, 0.2, 0.1], games=4, red="x"))
    write_result(original, path)
    assert read_result(path) == original


def test_the_file_has_settings_and_figures_side_by_side(tmp_path: Path) -> None:
    write_result(result(row([1, 2, 4], games=1000, red="x")), tmp_path / "x.json")
    (content,) = json.loads((tmp_path / "x.json").read_text())["groups"]["batch"]
    assert content == {
        "name": "Batch.step",
        "settings": {"games": 1000, "red": "x"},
        "nanoseconds_per_step": {"median": 2.0, "quartiles": [1.0, 4.0]},
        "steps_per_second": 5e8,
        "repetitions": {
            "calls": 1000,
            "steps_per_call": 1,
            "warm_up_seconds": 0.0,
            "seconds": [1e-6, 2e-6, 4e-6],
            "reference_seconds": [],
        },
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "must be a result of `cagepool bench`: Input data was truncated"),
        ("[]", "must be a result of `cagepool bench`: Expected `object`, got `array`"),
        ('{"what": "MiniCAGE"}', "must be .*: Object missing required field `bench`"),
    ],
    ids=["damaged", "no object", "foreign"],
)
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{path} {sentence}"):
        read_result(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be a file that can be read"):
        read_result(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("key", "value"),
    [("seconds", []), ("seconds", [0.0]), ("calls", 0), ("reference_seconds", [float("nan")])],
)
def test_repetitions_that_took_no_time_are_refused(tmp_path: Path, key: str, value: Any) -> None:
    path = tmp_path / "x.json"
    write_result(result(row([1, 2])), path)
    content = json.loads(path.read_text())
    content["groups"]["batch"][0]["repetitions"][key] = value
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"^{path} must be a result of"):
        read_result(path)


def measured(nanoseconds: list[float]) -> Measurement:
    return row(nanoseconds)


def test_the_cost_is_summarized_by_median_and_quartiles() -> None:
    cost = measured([5, 1, 4, 2, 3, 7, 6]).nanoseconds_per_step
    assert (cost.median, cost.quartiles) == (4, (2, 6))
    assert measured([5, 1, 4, 2, 3, 7, 6]).steps_per_second == pytest.approx(1e9 / 4)


def test_one_slow_repetition_does_not_move_the_median() -> None:
    assert measured([1000] * 4 + [1e9]).nanoseconds_per_step.median == 1000


def test_a_contender_is_found_by_name_and_settings() -> None:
    group = [row([1, 1], games=1), row([2, 2], games=2), row([3, 3], "other", games=1)]
    assert find(group, "Batch.step", games=2) is group[1]
    assert find(group, "other", order=None) is group[2]
    for settings in ({"games": 3}, {}):
        with pytest.raises(ValueError, match="unpack"):
            find(group, "Batch.step", **settings)


def test_settings_are_split_into_those_that_differ_and_the_others() -> None:
    rows: list[dict[str, Any]] = [{"games": 1, "red": "x"}, {"games": 2, "red": "x", "order": "y"}]
    assert split_settings(rows) == (["games", "order"], "red x")
