"""How a training run goes, for people to watch: a live table, or plain lines where none can be."""

import time
from collections import deque
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table

from cagepool.cli.cluster import actors_replaced
from cagepool.cli.watching import LINE_SECONDS, Watching
from cagepool.train.config import TrainConfig

if TYPE_CHECKING:  # they load PyTorch, which takes a second
    from cagepool.train.evaluation import Check
    from cagepool.train.logging import Row

WINDOW = 20  # updates over which rates are taken


class Display(Watching):
    """Listens to a run and shows it."""

    def __init__(self, console: Console, config: TrainConfig) -> None:
        """Show a run with these settings."""
        super().__init__(console, keep=True)
        self._config = config
        self._rows: deque[Row] = deque(maxlen=WINDOW)
        self._check = ""
        self._replaced = 0
        self._printed = -float("inf")

    def updated(self, row: "Row") -> None:
        """Show an update."""
        self._rows.append(row)
        self._replaced += int(row.get("replaced", 0))
        if self._console.is_terminal:
            self._live.update(self._picture())
        elif time.monotonic() - self._printed >= LINE_SECONDS or self._is_over:
            self._printed = time.monotonic()
            self._console.print(self._line(), soft_wrap=True)

    def checked(self, row: "Row", check: "Check", *, is_best: bool) -> None:
        """Show a check."""
        mark = ", the best so far" if is_best else ""
        self._check = f"{check.score:.2f} ± {check.standard_error:.2f}{mark}"
        if not self._console.is_terminal:
            episodes = f"{row['episodes']:,.0f}"
            self._console.print(f"check after {episodes} episodes: {self._check}", soft_wrap=True)

    @property
    def _is_over(self) -> bool:
        return self._rows[-1]["episodes"] == self._config.total_episodes

    @property
    def _steps_per_second(self) -> float:
        first, last = self._rows[0], self._rows[-1]
        if len(self._rows) == 1:
            return last["steps"] / max(last["seconds"], 1e-9)
        return (last["steps"] - first["steps"]) / max(last["seconds"] - first["seconds"], 1e-9)

    @property
    def _seconds_left(self) -> float:
        last = self._rows[-1]
        total = self._config.total_episodes
        rate = self._steps_per_second * last["episodes"] / max(last["steps"], 1)  # episodes
        return (total - last["episodes"]) / rate if rate else float("inf")

    def _line(self) -> str:
        row = self._rows[-1]
        return (
            f"{row['episodes']:,.0f}/{self._config.total_episodes:,} episodes  "
            f"{self._steps_per_second:,.0f} steps/s  return {_spread(row)}  "
            f"{_compliance(row)}entropy {row['entropy']:.2f}  kl {row['kl']:.4f}  "
            f"{_clock(self._seconds_left)} left"
            f"{f'  {actors_replaced(self._replaced)}' if self._replaced else ''}"
        )

    def _picture(self) -> Table:
        row = self._rows[-1]
        table = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=self._config.total_episodes, completed=row["episodes"], width=50)
        table.add_row("", bar)
        table.add_row("episodes", f"{row['episodes']:,.0f} of {self._config.total_episodes:,}")
        table.add_row("steps/s", f"{self._steps_per_second:,.0f}")
        table.add_row("return", _spread(row))
        if "compliance" in row:
            table.add_row("order", _compliance(row))
        table.add_row("check on other seeds", self._check or "none yet")
        losses = f"policy {row['policy_loss']:.4f}  value {row['value_loss']:.4f}"
        table.add_row("losses", losses)
        moved = f"entropy {row['entropy']:.2f}  kl {row['kl']:.4f}"
        table.add_row("policy", f"{moved}  clipped {row['clip_fraction']:.0%}")
        table.add_row("time", f"{_clock(row['seconds'])}, {_clock(self._seconds_left)} left")
        if self._replaced:
            table.add_row("cluster", actors_replaced(self._replaced))
        return table


def _spread(row: "Row") -> str:
    if np.isnan(row["return_mean"]):
        return "-"
    return f"{row['return_mean']:.2f} ± {row['return_std']:.2f}"


def _compliance(row: "Row") -> str:
    if "compliance" not in row or np.isnan(row["compliance"]):
        return ""
    return (
        f"compliance {row['compliance']:.3f}  coverage {row['coverage']:.2f}  "
        f"wasted fixes {row['wasted_fixes']:.0f}  "
    )


def _clock(seconds: float) -> str:
    if not np.isfinite(seconds):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
