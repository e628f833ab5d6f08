"""Figures on the page are those of the folders, and add up."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from cagepool.report import breakdowns, tables
from cagepool.report.run_data import Folder, read_folders
from tests.report import folders


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[Folder]:
    root = tmp_path_factory.mktemp("pair")
    paths = [
        folders.evaluated(root / "today", seed=1),
        folders.evaluated(root / "former", seed=2, edition="leaderboard"),
    ]
    return read_folders(paths)


def test_editions_never_share_a_table(pair: list[Folder]) -> None:
    today, former = tables.score_tables(pair)
    assert (today.edition, former.edition) == ("2.1", "leaderboard")
    names = [{row.name for row in table.rows} for table in (today, former)]
    assert "today" in names[0] - names[1]
    assert "former" in names[1] - names[0]


def test_defenders_stand_best_first_with_the_best_of_each_column_marked(
    pair: list[Folder],
) -> None:
    table, _ = tables.score_tables(pair)
    totals = [row.total.mean for row in table.rows if row.total]
    assert totals == sorted(totals, reverse=True)
    for column in zip(*(row.cells for row in table.rows), strict=True):
        means = [cell.mean for cell in column if cell]
        best = [mean == max(means) > min(means) for mean in means]
        assert [cell.best for cell in column if cell] == best


def test_causes_of_loss_add_up_to_the_score(pair: list[Folder]) -> None:
    evaluation = pair[0].evaluation
    assert evaluation
    scores = {cell["red"]: cell["mean"] for cell in evaluation["scores"] if cell["length"] == 100}
    for bar in breakdowns.loss_bars(pair)["today"]:
        assert bar.total == pytest.approx(-scores[bar.title])


def test_the_longest_bar_is_full_and_the_others_keep_the_scale(pair: list[Folder]) -> None:
    bars = [bar for of_run in breakdowns.loss_bars(pair).values() for bar in of_run]
    longest = max(bar.total for bar in bars)
    for bar in bars:
        percent = sum(segment.percent for segment in bar.segments)
        assert percent == pytest.approx(100 * bar.total / longest)


def test_seconds_that_no_part_claims_belong_to_everything_else(pair: list[Folder]) -> None:
    metrics = {**pair[0].metrics, "seconds": [30.0]}
    (bar,) = breakdowns.time_bars([replace(pair[0], metrics=metrics)])
    seconds = {segment.kind: segment.amount for segment in bar.segments}
    assert seconds == pytest.approx({"wait": 7.2, "update": 14.4, "other": 8.4})
    assert bar.total == pytest.approx(30)


def test_collecting_beside_learning_is_told_apart_from_waiting(pair: list[Folder]) -> None:
    assert breakdowns.hidden_seconds(pair[0]) == pytest.approx(4.8)
    waited = {**pair[0].metrics, "collect_seconds": pair[0].metrics["wait_seconds"]}
    assert breakdowns.hidden_seconds(replace(pair[0], metrics=waited)) == 0


def test_kinds_of_action_that_were_never_used_are_listed_not_drawn(pair: list[Folder]) -> None:
    evaluation = pair[0].evaluation
    assert evaluation
    heat = breakdowns.heat_maps(evaluation)
    assert [list(one.rows) for one in heat.maps] == [["Monitor", "Restore"]] * 3
    assert "Analyse" in heat.unused
    cells = [cell for one in heat.maps for row in one.rows.values() for cell in row]
    assert max(cell.heat for cell in cells) == 100
    assert all((cell.heat == 0) == (cell.uses == 0) for cell in cells)


def test_only_settings_that_disagree_differ(pair: list[Folder]) -> None:
    differing = {one.name: one.values for one in tables.settings(pair) if one.differs}
    assert differing == {"edition": ["2.1", "leaderboard"], "seed": ["1", "2"]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (False, "no"),
        (0, "0"),
        (1, "1"),
        (3e-4, "0.0003"),
        ([64, 64], "64, 64"),
        ([], "none"),
        ("mix", "mix"),
    ],
)
def test_a_setting_is_shown_as_one_would_write_it(value: object, text: str) -> None:
    assert tables.shown(value) == text


def test_a_check_without_a_score_is_not_the_best(tmp_path: Path) -> None:
    (folder,) = read_folders([folders.trained(tmp_path / "run")])
    checks = {"score": [math.nan, -9.0, -7.0], "standard_error": [math.nan, 1.0, 2.0]}
    assert tables.overview(replace(folder, checks=checks), 0).check == tables.Figure(-7.0, 2.0)


def test_the_overview_tells_the_best_check_and_the_speed(tmp_path: Path) -> None:
    (folder,) = read_folders([folders.trained(tmp_path / "run")])
    overview = tables.overview(folder, 0)
    assert overview.total is None
    assert overview.check
    assert overview.check.mean == max(folder.checks["score"])
    assert (overview.episodes, overview.seconds) == (24_000, 24.0)
    assert overview.steps_per_second == pytest.approx(100_000)
