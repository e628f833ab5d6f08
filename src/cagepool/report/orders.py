"""Plots of a search over orders."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, MaxNLocator

from cagepool.report.colours import series, stand_in
from cagepool.report.search_data import SearchFolder, Training
from cagepool.report.svg import drawing

SHOWN = 25  # orders of the ranking that are drawn
ROW = 19  # pixels a line


def ranking_plot(found: SearchFolder) -> Markup:
    """Rewards of the best orders with their standard errors, beside what the model believes."""
    shown = found.ranking[:SHOWN]
    with drawing("Rewards of the best orders", 760, 70 + ROW * len(shown)) as made:
        axes = made.axes
        for place, one in enumerate(shown):
            if one.believed is not None:
                mean, deviation = one.believed
                band = ([mean - deviation, mean + deviation], [place, place])
                axes.plot(*band, color=stand_in("line"), linewidth=6, solid_capstyle="butt")
            dot = _Dot(x=one.reward, y=place, order=one.order, passes=one.passes,
                       error_x=one.standard_error)  # fmt: skip
            dot.draw(axes, found)
        axes.set_yticks(range(len(shown)), [one.order for one in shown])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        axes.set_xlabel("mean reward of an episode")
    return made.svg


def compliance_plot(found: SearchFolder) -> Markup:
    """Compliance against reward; hollow: the order does not pass."""
    with drawing("Compliance against reward", 420, 280) as made:
        threshold = found.settings["compliance_threshold"]
        made.axes.axvline(threshold, color=stand_in("muted"), linewidth=0.8, linestyle="--")
        for one in found.ranking:
            if one.compliance is not None:
                dot = _Dot(x=one.compliance, y=one.reward, order=one.order, passes=one.passes,
                           error_y=one.standard_error)  # fmt: skip
                dot.draw(made.axes, found)
        made.axes.set_xlabel("compliance")
        made.axes.set_ylabel("mean reward of an episode")
    return made.svg


def path_plot(found: SearchFolder) -> Markup:
    """Reward of each training against the episodes spent, and the best that passed so far."""
    with drawing("The path of the search", 760, 300) as made:
        for one in found.trainings:
            dot = _Dot(x=one.total_episodes, y=one.reward, order=one.order, passes=one.passes,
                       error_y=one.standard_error)  # fmt: skip
            dot.draw(made.axes, found)
        spent, best = _best_so_far(found.trainings)
        if spent:
            ends = [*spent, found.trainings[-1].total_episodes]
            made.axes.step(
                ends, [*best, best[-1]], where="post", color=stand_in("muted"), linewidth=1
            )
        made.axes.xaxis.set_major_locator(MaxNLocator(6))
        made.axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        made.axes.set_xlabel("training episodes spent")
        made.axes.set_ylabel("mean reward of an episode")
    return made.svg


def belief_plot(found: SearchFolder) -> Markup:
    """What the model expected of an order before it was trained to, against what was measured."""
    with drawing("Posterior against observations", 420, 280) as made:
        asked = [one for one in found.trainings if one.expected is not None and one.iteration > 1]
        for one in asked:
            assert one.expected is not None
            mean, deviation = one.expected
            dot = _Dot(x=mean, y=one.reward, order=one.order, passes=one.passes,
                       error_x=deviation, error_y=one.standard_error)  # fmt: skip
            dot.draw(made.axes, found)
        if asked:
            rewards = [one.reward for one in asked]
            ends = [min(rewards), max(rewards)]
            made.axes.plot(ends, ends, color=stand_in("muted"), linewidth=0.8, linestyle="--")
        made.axes.set_xlabel("expected before training ± deviation")
        made.axes.set_ylabel("measured after it")
    return made.svg


@dataclass(frozen=True, kw_only=True)
class _Dot:
    """A circle in the colour of an order's class, hollow if it does not pass."""

    x: float
    y: float
    order: str
    passes: bool
    error_x: float | None = None
    error_y: float | None = None

    def draw(self, axes: Axes, found: SearchFolder) -> None:
        colour = stand_in(series(found.kind_number(self.order)))
        axes.errorbar(
            self.x,
            self.y,
            self.error_y,
            self.error_x,
            fmt="o",
            markersize=4.5,
            color=colour,
            markerfacecolor=colour if self.passes else stand_in("surface"),
            elinewidth=1,
            zorder=3,
        )


def _best_so_far(trainings: Iterable[Training]) -> tuple[list[int], list[float]]:
    spent: list[int] = []
    best: list[float] = []
    for one in trainings:
        if one.passes and one.reward > max(best, default=-np.inf):
            spent.append(one.total_episodes)
            best.append(one.reward)
    return spent, best
