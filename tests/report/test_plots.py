"""Plots of learning curves agree with the tables of the run."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cagepool.report import plots
from cagepool.report.data import ContenderResult, Group, RunData, read_runs
from cagepool.report.page import render_runs
from tests.report import run_folders

NAN = math.nan


@pytest.fixture
def run(tmp_path: Path) -> RunData:
    return read_runs([run_folders.trained(tmp_path / "run")])[0]


def test_downsampling_averages_neighbors_and_drops_rows_without_a_value() -> None:
    columns = {"episodes": [1.0, 2.0, 3.0, 4.0, 5.0], "entropy": [8.0, NAN, 4.0, 2.0, 0.0]}
    episodes, entropy = plots.downsample(columns, ["episodes", "entropy"], max_points=2)
    assert episodes.tolist() == [2.0, 4.5]
    assert entropy.tolist() == [6.0, 1.0]


def test_the_deviation_of_merged_rows_is_that_of_all_their_episodes() -> None:
    returns = np.random.default_rng(1).normal([[-50.0], [-20.0], [-9.0]], 4.0, (3, 100))
    columns = {
        "episodes": [100.0, 200.0, 300.0],
        "return_mean": returns.mean(axis=1).tolist(),
        "return_std": returns.std(axis=1).tolist(),
    }
    _, mean, deviation = plots.return_moments(columns, max_points=1)
    assert mean == pytest.approx([returns.mean()])
    assert deviation == pytest.approx([returns.std()])


def test_only_columns_with_values_other_than_zero_get_a_plot(run: RunData) -> None:
    titles = {plot.title for plot in plots.panel_plots([run])}
    assert {"Entropy", "KL divergence", "Explained variance"} <= titles
    assert not {"Staleness", "Compliance", "Coverage"} & titles


def test_labels_of_small_numbers_keep_their_digits(run: RunData) -> None:
    (rates,) = (plot.svg for plot in plots.panel_plots([run]) if plot.title == "Learning rate")
    assert ">0.0003<" in rates


def test_plots_take_every_color_from_the_style_sheet(run: RunData) -> None:
    svg = plots.return_plot([run, run])
    assert "var(--series-1)" in svg
    assert "var(--series-2)" in svg
    assert "#" not in svg.replace("url(#", "").replace('href="#', "")


def test_returns_of_one_magnitude_have_a_linear_axis(run: RunData) -> None:
    run.metrics["return_mean"] = [float(20 + n % 7) for n in range(len(run.metrics["update"]))]
    run.metrics["return_std"] = [1.0] * len(run.metrics["update"])
    run.evaluations.clear()
    svg = plots.return_plot([run])
    assert ">20<" in svg
    assert "−500" not in svg  # noqa: RUF001 - as Matplotlib writes it


def test_runs_with_equal_curves_stay_visible(run: RunData, tmp_path: Path) -> None:
    copy = replace(run, name="copy")
    other = replace(read_runs([run_folders.trained(tmp_path / "seed", seed=4)])[0], name="other")
    assert plots.equal_runs([run, copy, other]) == [[run, copy]]
    assert "stroke-dasharray" in plots.return_plot([run, copy])
    assert "stroke-dasharray" not in plots.return_plot([run, other])
    assert "run, copy have equal curves" in render_runs([run, copy])


def rates(*steps_per_second: float) -> Group:
    contenders = [
        ContenderResult(f"n{rate}", [], (1e9 / rate, 1e9 / rate, 1e9 / rate))
        for rate in steps_per_second
    ]
    return Group("rates", "", [], contenders)


def test_a_logarithmic_axis_has_points_in_the_place_of_bars() -> None:
    def bars(group: Group) -> int:
        return plots.rate_plot("bench", group).count('<g id="patch_')

    linear, logarithmic = bars(rates(100, 200, 300)), bars(rates(100, 2_000, 30_000))
    assert linear - logarithmic == 3


def test_the_return_of_a_reward_function_has_a_panel(run: RunData) -> None:
    shaped = {**run.metrics, "shaped_return_mean": run.metrics["return_mean"]}
    titles = [panel.title for panel in plots.panel_plots([replace(run, metrics=shaped)])]
    assert titles == ["Shaped return", *(panel.title for panel in plots.panel_plots([run]))]
