"""Tables and breakdowns of the page agree with the run run_folders."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from cagepool.report import tables
from cagepool.report.data import RunData, read_runs
from tests.report import run_folders


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[RunData]:
    root = tmp_path_factory.mktemp("pair")
    paths = [
        run_folders.evaluated(root / "today", seed=1),
        run_folders.evaluated(root / "former", seed=2, edition="leaderboard"),
    ]
    return read_runs(paths)


def test_editions_never_share_a_table(pair: list[RunData]) -> None:
    today, former = tables.score_tables(pair)
    assert (today.title, former.title) == (
        "CAGE-2, edition 2.1",
        "CAGE-2, edition leaderboard",
    )
    names = [{row.name for row in table.rows} for table in (today, former)]
    assert "today" in names[0] - names[1]
    assert "former" in names[1] - names[0]


def test_defenders_stand_best_first_with_the_best_of_each_column_marked(
    pair: list[RunData],
) -> None:
    table, _ = tables.score_tables(pair)
    totals = [row.total.mean for row in table.rows if row.total]
    assert totals == sorted(totals, reverse=True)
    for column in zip(*(row.cells for row in table.rows), strict=True):
        means = [cell.mean for cell in column if cell]
        best = [mean == max(means) > min(means) for mean in means]
        assert [cell.best for cell in column if cell] == best


def test_causes_of_loss_add_up_to_the_score(pair: list[RunData]) -> None:
    evaluation = pair[0].evaluation
    assert evaluation
    scores = {cell.red: cell.mean for cell in evaluation.scores if cell.length == 100}
    for bar in tables.loss_bars(pair)["today"]:
        assert bar.total == pytest.approx(-scores[bar.title])


def test_the_longest_bar_is_full_and_the_others_keep_the_scale(pair: list[RunData]) -> None:
    bars = [bar for run_bars in tables.loss_bars(pair).values() for bar in run_bars]
    longest = max(bar.total for bar in bars)
    for bar in bars:
        percent = sum(segment.percent for segment in bar.segments)
        assert percent == pytest.approx(100 * bar.total / longest)


def test_unaccounted_seconds_count_as_other(pair: list[RunData]) -> None:
    metrics = {**pair[0].metrics, "seconds": [30.0]}
    (bar,) = tables.time_bars([replace(pair[0], metrics=metrics)])
    seconds = {segment.kind: segment.amount for segment in bar.segments}
    assert seconds == pytest.approx({"wait": 7.2, "update": 14.4, "other": 8.4})
    assert bar.total == pytest.approx(30)


def test_collection_during_updates_is_not_counted_as_waiting(pair: list[RunData]) -> None:
    assert tables.overlapped_seconds(pair[0]) == pytest.approx(4.8)
    waited = {**pair[0].metrics, "collect_seconds": pair[0].metrics["wait_seconds"]}
    assert tables.overlapped_seconds(replace(pair[0], metrics=waited)) == 0


def test_kinds_of_action_that_were_never_used_are_listed_not_plotted(pair: list[RunData]) -> None:
    evaluation = pair[0].evaluation
    assert evaluation
    heat = tables.heat_maps(evaluation)
    assert [list(each.rows) for each in heat.maps] == [["Monitor", "Restore"]] * 3
    assert "Analyse" in heat.unused
    cells = [cell for each in heat.maps for row in each.rows.values() for cell in row]
    assert max(cell.heat for cell in cells) == 100
    assert all((cell.heat == 0) == (cell.uses == 0) for cell in cells)


def test_only_settings_that_disagree_differ(pair: list[RunData]) -> None:
    differing = {each.name: each.values for each in tables.settings_table(pair) if each.differs}
    assert differing == {"env.edition": ["2.1", "leaderboard"], "run.seed": ["1", "2"]}


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
def test_a_setting_is_formatted_as_text(value: object, text: str) -> None:
    assert tables.format_value(value) == text


def test_a_periodic_evaluation_without_a_score_is_not_the_best(tmp_path: Path) -> None:
    (run,) = read_runs([run_folders.trained(tmp_path / "run")])
    evaluations = {
        "score": [math.nan, -9.0, -7.0],
        "standard_error": [math.nan, 1.0, 2.0],
        "return_mean": [math.nan, -14.0, -12.0],
        "return_error": [math.nan, 2.0, 3.0],
    }
    figures = tables.run_figures(replace(run, evaluations=evaluations), 0)
    assert figures.evaluation == tables.Estimate(-12.0, 3.0)


def test_the_summary_has_the_best_periodic_evaluation_and_the_speed(tmp_path: Path) -> None:
    (run,) = read_runs([run_folders.trained(tmp_path / "run")])
    summary = tables.run_figures(run, 0)
    assert summary.total is None
    assert summary.evaluation
    best = run.evaluations["score"].index(max(run.evaluations["score"]))
    assert summary.evaluation.mean == run.evaluations["return_mean"][best]
    assert (summary.episodes, summary.seconds) == (24_000, 24.0)
    assert summary.steps_per_second == pytest.approx(100_000)
