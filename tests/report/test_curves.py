"""Curves show what the tables of a run say."""

import math
from pathlib import Path

import numpy as np
import pytest

from cagepool.report import curves
from cagepool.report.run_data import Folder, read_folders
from tests.report import folders

NAN = math.nan


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return read_folders([folders.trained(tmp_path / "run")])[0]


def test_neighbours_are_averaged_and_rows_without_a_value_left_out() -> None:
    columns = {"episodes": [1.0, 2.0, 3.0, 4.0, 5.0], "entropy": [8.0, NAN, 4.0, 2.0, 0.0]}
    episodes, entropy = curves.thinned(columns, ["episodes", "entropy"], points=2)
    assert episodes.tolist() == [2.0, 4.5]
    assert entropy.tolist() == [6.0, 1.0]


def test_the_spread_of_neighbours_is_that_of_all_their_episodes() -> None:
    returns = np.random.default_rng(1).normal([[-50.0], [-20.0], [-9.0]], 4.0, (3, 100))
    columns = {
        "episodes": [100.0, 200.0, 300.0],
        "return_mean": returns.mean(axis=1).tolist(),
        "return_std": returns.std(axis=1).tolist(),
    }
    _, mean, deviation = curves.spread(columns, points=1)
    assert mean == pytest.approx([returns.mean()])
    assert deviation == pytest.approx([returns.std()])


def test_only_columns_with_values_other_than_zero_get_a_plot(folder: Folder) -> None:
    titles = {plot.title for plot in curves.panels([folder])}
    assert {"Entropy", "KL divergence", "Explained variance"} <= titles
    assert not {"Staleness", "Compliance", "Coverage"} & titles


def test_labels_of_small_numbers_keep_their_digits(folder: Folder) -> None:
    (rates,) = (plot.svg for plot in curves.panels([folder]) if plot.title == "Learning rate")
    assert ">0.0003<" in rates


def test_plots_take_every_colour_from_the_style_sheet(folder: Folder) -> None:
    svg = curves.return_plot([folder, folder])
    assert "var(--series-1)" in svg
    assert "var(--series-2)" in svg
    assert "#" not in svg.replace("url(#", "").replace('href="#', "")


def test_returns_that_need_no_bent_axis_are_drawn_straight(folder: Folder) -> None:
    folder.metrics["return_mean"] = [
        float(20 + n % 7) for n in range(len(folder.metrics["update"]))
    ]
    folder.metrics["return_std"] = [1.0] * len(folder.metrics["update"])
    folder.checks.clear()
    svg = curves.return_plot([folder])
    assert ">20<" in svg
    assert "−500" not in svg  # noqa: RUF001 - as Matplotlib writes it
