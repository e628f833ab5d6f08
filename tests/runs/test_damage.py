"""Damaged run folders: every reader refuses them in one sentence, or reads what is left."""

import json
import random
import shutil
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cagepool import runs
from cagepool.evaluate import Trial
from cagepool.evaluate.game_log import record_games
from cagepool.evaluate.protocol import evaluate
from cagepool.policy.load import load
from cagepool.report.data import read_runs
from cagepool.runs.listing import summarize
from cagepool.runs.schema import WorkflowFile
from cagepool.train import runner
from tests.train.null_listener import NullListener, never
from tests.train.short_runs import SHORT, train_run

ODD_VALUES: tuple[Any, ...] = (
    None, "x", "", "[/red]", -1, 0, 2**70, 1e308, True, [], {}, [[[]]], {"a": {"b": []}}, "\x1b[2J",
)  # fmt: skip
ODD_CELLS = ("", "x", "inf", "-inf", "nan", "-1", "1e999", "1e18", '"', "1,1", "\n", "\x00")
DEEP = "[" * 50_000


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run with an evaluation and all files that a folder may have."""
    config = SHORT.with_settings(total_episodes=20)
    folder = train_run(tmp_path_factory.mktemp("runs") / "whole", config)
    blue = load(str(folder))
    result = evaluate(blue, Trial(episodes=2, edition=blue.edition))
    games = record_games(result.trial, result.statistics)
    runs.write_evaluation(folder, result.to_file(), games, is_last=False)
    workflow = WorkflowFile(
        mean=-1.0,
        standard_error=0.1,
        episodes=5,
        compliance=None,
        coverage=0.5,
        decisions=1.0,
        wasted_fixes=0.0,
        passes=True,
        order="a",
        outcome="spent",
        reason="",
    )
    runs.write_model(folder / runs.WORKFLOW, workflow)
    return folder


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Places of all values inside a JSON value; of a list only the first."""
    yield place
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*place, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*place, 0))


def with_change(value: Any, place: tuple[Any, ...], odd: Any) -> str:
    """JSON with another value in a place, or, for `...`, without it."""
    copy = inner = json.loads(json.dumps(value))
    for key in place[:-1]:
        inner = inner[key]
    if odd is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = odd
    return json.dumps(copy)


Content: TypeAlias = Callable[[], str]  # made when it is needed: all of them take seconds


def json_damages(path: Path) -> Iterator[Content]:
    """Contents with one value replaced or removed."""
    value = json.loads(path.read_text())
    for place in places(value):
        if place:
            yield from (partial(with_change, value, place, odd) for odd in (*ODD_VALUES, ...))
            yield partial(with_deep_value, value, place)


def with_deep_value(value: Any, place: tuple[Any, ...]) -> str:
    return with_change(value, place, "deep").replace('"deep"', DEEP)


def table_damages(path: Path) -> Iterator[Content]:
    header, *rows = path.read_text().splitlines()
    names = header.split(",")
    for number, name in enumerate(names):
        yield partial("\n".join, [header.replace(name, "other", 1), *rows, ""])
        for odd in ODD_CELLS:
            cells = rows[-1].split(",")
            cells[number] = odd
            yield partial("\n".join, [header, *rows[:-1], ",".join(cells), ""])


def damages(folder: Path) -> list[tuple[str, Content]]:
    found: list[tuple[str, Content]] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".json", ".csv"):
            text = path.read_text()
            contents = [*(json_damages if path.suffix == ".json" else table_damages)(path)]
            others = ("", text[: len(text) // 2], DEEP, "null", "[]", "3", "\ufeff" + text)
            contents += [partial(str, other) for other in others]
            found += [(str(path.relative_to(folder)), content) for content in contents]
    return found


def read_all(folder: Path) -> Iterator[Callable[[], object]]:
    yield lambda: summarize(folder)
    yield lambda: load(folder).act([0] * 52)
    yield lambda: load(folder, "last").act([0] * 52)
    yield lambda: read_runs([folder])
    yield lambda: runner.train(runs.open_run(folder), NullListener(), never)


@pytest.mark.parametrize("count", [8, pytest.param(10**6, marks=pytest.mark.soak)])
def test_a_damaged_value_is_refused_in_one_sentence_or_harmless(
    complete: Path, tmp_path: Path, count: int
) -> None:
    every = damages(complete)
    sample = every if count > len(every) else random.Random(0).sample(every, count)
    for name, make_content in sample:
        content = make_content()
        folder = shutil.copytree(complete, tmp_path / "damaged")
        (folder / name).write_text(content)
        faults = [fault for read in read_all(folder) if (fault := fault_of(read))]
        assert [fault for fault in faults if "\n" in fault] == [], (name, content[:3000])
        shutil.rmtree(folder)


def fault_of(read: Callable[[], object]) -> str:
    """The sentence of a refusal, or the trace of any other exception.

    A damaged count of episodes can leave one sample for a deviation, of which NumPy warns.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            read()
    except ValueError as error:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever a damaged folder causes is the fault to find
        return traceback.format_exc()
    return ""
