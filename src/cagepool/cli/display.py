"""Console output: progress of trainings and searches, as a live table or plain lines; scores."""

import contextlib
import shlex
import time
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from rich import box
from rich.console import Console
from rich.live import Live
from rich.progress import Progress
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from cagepool.cli import EXIT_BROKEN_PIPE, printable
from cagepool.evaluate import Score, ScoreTable
from cagepool.experiments.listener import Listener
from cagepool.search.config import SearchConfig, SearchListener
from cagepool.sim.compliance import ALL_ORDERS
from cagepool.train.config import TrainConfig

if TYPE_CHECKING:  # these modules load PyTorch and scikit-learn, which takes a second
    from cagepool.experiments.folder import Training
    from cagepool.search.records import Decision
    from cagepool.search.strategy import Posterior
    from cagepool.study.config import StudyTraining
    from cagepool.train.tracking import Row

LINE_SECONDS = 5.0  # between two plain lines
RATE_WINDOW = 20  # updates over which throughput is averaged
MAX_WIDTH = 1000  # of a table that is measured, not printed
FULL_WIDTH = 75  # of a terminal that has room between columns
POSTERIOR_ROWS = 3  # orders with the highest posterior means


class CommandConsole(Console):
    """Console that prints text as it is, and exits quietly when the reader of a pipe closes it.

    Names of folders and settings may come from strangers: nothing in them is markup, an emoji code
    or a control sequence of the terminal.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        """Write to stdout, or to stderr."""
        super().__init__(highlight=False, stderr=stderr, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Text with visible escapes in the place of control characters."""
        return super().render_str(printable(text), **options)

    def on_broken_pipe(self) -> NoReturn:
        """Exit with the code that shells report for SIGPIPE."""
        with contextlib.suppress(SystemExit):  # of Rich, with code 1
            super().on_broken_pipe()
        raise SystemExit(EXIT_BROKEN_PIPE)


def command_line(*arguments: object) -> str:
    """A command of `cagepool` that can be pasted into a shell."""
    return shlex.join(["cagepool", *map(str, arguments)])


def progress_bars() -> Progress:
    """Transient progress bars on stderr; disabled if stderr is not a terminal."""
    console = CommandConsole(stderr=True)
    return Progress(console=console, transient=True, disable=not console.is_terminal)


def actors_replaced(count: int) -> str:
    """Number of Ray actors that died and were replaced, as a phrase."""
    return f"{count} {'actor' if count == 1 else 'actors'} replaced"


class _LiveDisplay:
    """Context manager that shows a live table if the console is a terminal."""

    def __init__(self, console: Console, *, transient: bool) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=4, transient=transient)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def _print_line(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)


class TrainDisplay(_LiveDisplay):
    """Callback of a training that displays its progress."""

    def __init__(self, console: Console, config: TrainConfig) -> None:
        """Leave the last table on the console."""
        super().__init__(console, transient=False)
        self._config = config
        self._rows: deque[Row] = deque(maxlen=RATE_WINDOW)
        self._evaluation = ""
        self._actors_replaced = 0
        self._last_line_time = -float("inf")

    @property
    def has_updates(self) -> bool:
        """Whether any update was shown."""
        return bool(self._rows)

    def on_update(self, row: "Row") -> None:
        """Show an update."""
        self._rows.append(row)
        self._actors_replaced += int(row.get("replaced", 0))
        if self._console.is_terminal:
            self._live.update(self._table())
        elif time.monotonic() - self._last_line_time >= LINE_SECONDS or self._is_last_update:
            self._last_line_time = time.monotonic()
            self._print_line(self._line())

    def on_evaluation(self, scores: "Row") -> None:
        """Show a periodic evaluation."""
        mark = ", the best policy so far" if scores["best"] else ""
        what = "greedy return on other seeds" if self._config.env.is_cage else "return"
        score = f"{scores['return_mean']:.2f} ± {scores['return_error']:.2f}"
        self._evaluation = f"{what} {score}{mark}"
        if not self._console.is_terminal:
            self._print_line(
                f"evaluation after {scores['episodes']:,.0f} episodes: {self._evaluation}"
            )

    @property
    def _is_last_update(self) -> bool:
        return self._rows[-1]["episodes"] == self._config.run.total_episodes

    @property
    def _steps_per_second(self) -> float:
        first, last = self._rows[0], self._rows[-1]
        if len(self._rows) == 1:
            return last["steps"] / max(last["seconds"], 1e-9)
        return (last["steps"] - first["steps"]) / max(last["seconds"] - first["seconds"], 1e-9)

    @property
    def _seconds_left(self) -> float:
        last = self._rows[-1]
        episodes_per_second = self._steps_per_second * last["episodes"] / max(last["steps"], 1)
        episodes_left = self._config.run.total_episodes - last["episodes"]
        return episodes_left / episodes_per_second if episodes_per_second else float("inf")

    def _line(self) -> str:
        row = self._rows[-1]
        replaced = f"  {actors_replaced(self._actors_replaced)}" if self._actors_replaced else ""
        return (
            f"{row['episodes']:,.0f}/{self._config.run.total_episodes:,} episodes  "
            f"{self._steps_per_second:,.0f} steps/s  return {_return_of(row)}  "
            f"{_compliance_of(row)}entropy {row['entropy']:.2f}  kl {row['kl']:.4f}  "
            f"{_as_clock(self._seconds_left)} left{replaced}"
        )

    def _table(self) -> Table:
        row = self._rows[-1]
        table = Table.grid(padding=(0, 2))
        bar = ProgressBar(
            total=self._config.run.total_episodes, completed=row["episodes"], width=50
        )
        table.add_row("", bar)
        table.add_row("episodes", f"{row['episodes']:,.0f} of {self._config.run.total_episodes:,}")
        table.add_row("steps/s", f"{self._steps_per_second:,.0f}")
        table.add_row("return", _return_of(row))
        if "compliance" in row:
            table.add_row("order", _compliance_of(row))
        table.add_row("evaluation", self._evaluation or "none yet")
        losses = f"policy {row['policy_loss']:.4f}  value {row['value_loss']:.4f}"
        table.add_row("losses", losses)
        policy = f"entropy {row['entropy']:.2f}  kl {row['kl']:.4f}"
        table.add_row("policy", f"{policy}  clipped {row['clip_fraction']:.0%}")
        table.add_row("time", f"{_as_clock(row['seconds'])}, {_as_clock(self._seconds_left)} left")
        if self._actors_replaced:
            table.add_row("cluster", actors_replaced(self._actors_replaced))
        return table


class SearchDisplay(_LiveDisplay, SearchListener):
    """Listener of a search that displays its progress."""

    def __init__(self, console: Console, config: SearchConfig) -> None:
        """Remove the table when the search ends."""
        super().__init__(console, transient=True)
        self._config = config
        self._orders: dict[str, str] = {}  # by run folder, of trainings without a result
        self._rows: dict[str, Row] = {}  # their last updates
        self._posterior: Posterior | None = None
        self._spent = 0
        self._last_line_time = time.monotonic()

    def on_decision(self, decision: "Decision", predicted: "Posterior | None", spent: int) -> None:
        """Show the next order and the reason for it."""
        self._orders[decision.run] = f"{decision.iteration}: {decision.order}"
        self._posterior, self._spent = predicted, spent
        if self._console.is_terminal:
            self._live.update(self._table())
            return
        expected = ""
        if decision.mean is not None:
            expected = f", expected {decision.mean:.2f} ± {decision.std:.2f}"
        budget = f"{spent:,}/{self._config.run.total_episodes:,} episodes spent"
        self._print_line(
            f"{decision.iteration}: {decision.order} ({decision.why}{expected}; {budget})"
        )

    def on_update(self, training: "Training", row: "Row") -> None:
        """Show an update of a training."""
        self._rows[training.run] = row
        if self._console.is_terminal:
            self._live.update(self._table())
        elif time.monotonic() - self._last_line_time >= LINE_SECONDS:
            self._last_line_time = time.monotonic()
            for latest in self._rows.values():
                self._print_line(f"   {_training_state(latest)}")

    def on_result(self, decision: "Decision") -> None:
        """Print the result of a training."""
        self._orders.pop(decision.run)
        self._rows.pop(decision.run, None)
        self._spent = decision.total_episodes or 0
        compliance = "undefined" if decision.compliance is None else f"{decision.compliance:.3f}"
        reward = f"{decision.reward:.2f} ± {decision.standard_error:.2f}"
        restarts = f", restarted {decision.repeated} times" if decision.repeated else ""
        self._print_line(
            f"   {decision.order}: {decision.outcome} after {decision.episodes:,} episodes, "
            f"reward {reward}, compliance {compliance}{restarts}"
        )

    def _table(self) -> Table:
        total = self._config.run.total_episodes
        spent = self._spent + sum(int(row["episodes"]) for row in self._rows.values())
        table = Table.grid(padding=(0, 2))
        table.add_row("", ProgressBar(total=total, completed=spent, width=50))
        table.add_row("episodes", f"{spent:,} of {total:,}")
        for run, order in self._orders.items():
            iteration, _, name = order.partition(": ")
            table.add_row(f"order {iteration}", name)
            if run in self._rows:
                table.add_row("", _training_state(self._rows[run]))
        if self._posterior is not None:
            mean, std = self._posterior.mean, self._posterior.std
            for number in (-mean).argsort(kind="stable")[:POSTERIOR_ROWS]:
                score = f"{mean[number]:.2f} ± {std[number]:.2f}"
                table.add_row("posterior", f"{ALL_ORDERS[number]}  {score}")
        return table


class StudyDisplay(_LiveDisplay, Listener):
    """Listener of a study that displays what runs, what is done and the time left."""

    def __init__(
        self, console: Console, tasks: "Collection[StudyTraining]", complete: "Collection[Training]"
    ) -> None:
        """Show runs of a study, some of which may be complete already."""
        super().__init__(console, transient=True)
        self._tasks = tasks
        self._complete: set[Training] = {*complete}
        self._failed: set[Training] = set()
        self._running: dict[Training, int] = {}  # episodes played
        self._started_at = time.monotonic()
        self._episodes_at_start: Counter[Training] = Counter()
        self._ended_episodes = 0  # played by runs that ended, since the start of this process
        self._last_line_time = -float("inf")

    def on_start(self, task: "Training") -> None:
        """Show a run that starts."""
        self._running[task] = 0
        self._show()

    def on_update(self, task: "Training", row: "Row") -> None:
        """Show the progress of a run."""
        episodes = int(row["episodes"])
        self._episodes_at_start.setdefault(task, episodes)
        self._running[task] = episodes
        self._show()

    def on_end(self, task: "Training") -> None:
        """Count a run that is complete."""
        self._ended_episodes += task.episodes - self._episodes_at_start[task]
        self._running.pop(task, None)
        self._complete.add(task)
        if not self._console.is_terminal:
            self._print_line(f"{self._counts()}: {task.name} is complete")
        self._show()

    def on_failure(self, task: "Training", message: str) -> None:
        """Print which run failed, and why."""
        self._running.pop(task, None)
        self._failed.add(task)
        self._print_line(f"{task.name} failed: {message}")
        self._show()

    @property
    def _seconds_left(self) -> float:
        played = {task: self._running[task] for task in self._running}
        since_start = self._ended_episodes + sum(
            episodes - self._episodes_at_start[task] for task, episodes in played.items()
        )
        waiting = [task for task in self._tasks if task not in self._complete | self._failed]
        left = sum(task.episodes - played.get(task, 0) for task in waiting)
        elapsed = time.monotonic() - self._started_at
        return left * elapsed / since_start if since_start else float("inf")

    def _counts(self) -> str:
        failed = f", {len(self._failed)} failed" if self._failed else ""
        return f"{len(self._complete)} of {len(self._tasks)} runs{failed}"

    def _show(self) -> None:
        if self._console.is_terminal:
            self._live.update(self._table())
        elif time.monotonic() - self._last_line_time >= LINE_SECONDS:
            self._last_line_time = time.monotonic()
            runs = "; ".join(f"{task.name}: {done:,}" for task, done in self._running.items())
            self._print_line(f"{self._counts()}, {_as_clock(self._seconds_left)} left  {runs}")

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=len(self._tasks), completed=len(self._complete), width=50)
        table.add_row("", bar, "")
        elapsed = _as_clock(time.monotonic() - self._started_at)
        table.add_row("runs", self._counts(), f"{elapsed}, {_as_clock(self._seconds_left)} left")
        for task, episodes in self._running.items():
            table.add_row("running", task.name, f"{episodes:,} of {task.episodes:,} episodes")
        seeds = Counter(task.setting for task in self._tasks)
        done = Counter(task.setting for task in self._tasks if task in self._complete)
        for setting, count in seeds.items():
            table.add_row("setting", setting, f"{done[setting]} of {count} seeds")
        return table


def _return_of(row: "Row") -> str:
    if np.isnan(row["return_mean"]):
        return "-"
    return f"{row['return_mean']:.2f} ± {row['return_std']:.2f}"


def _compliance_of(row: "Row") -> str:
    if "compliance" not in row or np.isnan(row["compliance"]):
        return ""
    return (
        f"compliance {row['compliance']:.3f}  coverage {row['coverage']:.2f}  "
        f"wasted fixes per episode {row['wasted_fixes_per_episode']:.1f}  "
    )


def _training_state(row: "Row") -> str:
    compliance = "-" if row.get("compliance") is None else f"{row['compliance']:.3f}"
    return (
        f"{row['episodes']:,.0f} episodes  return {row['return_mean']:.2f}  "
        f"compliance {compliance}  entropy {row['entropy']:.2f}"
    )


def _as_clock(seconds: float) -> str:
    """Hours, minutes and seconds, as h:mm:ss or m:ss."""
    if not np.isfinite(seconds):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@dataclass(frozen=True)
class ReferenceScores:
    """Formatted scores that are printed below those of the evaluated policy."""

    name: str
    cells: Mapping[str, Mapping[int, str]]  # by red agent, then by episode length
    total: str


def format_score(score: Score) -> str:
    """Mean ± standard error."""
    return f"{score.mean:.2f} ± {score.standard_error:.2f}"


def print_scores(
    console: Console, name: str, result: ScoreTable, references: Sequence[ReferenceScores] = ()
) -> None:
    """Print one row of scores per red agent, each followed by the references, and the totals."""
    trial = result.trial
    edition = f"edition {trial.edition}{' with green' if trial.green else ''}"
    count = len(trial.scenarios)
    per = "against each red" if count == 1 else f"per red in each of {count} scenarios"
    episodes = f"{trial.episodes} episodes {per}, seed {trial.seed}"
    console.print(f"{name}, {edition}, {episodes}", soft_wrap=True)
    over = "" if count == 1 else " over scenarios"
    console.print(f"mean total reward ± standard error{over}")
    table = _wide_table(result, references)
    fits = table.__rich_measure__(console, console.options.update(width=MAX_WIDTH)).maximum
    console.print(table if fits <= console.width else _narrow_table(result, references))
    cells = sum(map(len, result.scores.values()))
    if result.is_official or references or count > 1:
        cells_name = "nine" if result.is_official else str(cells)
        spread = "" if result.spread is None else f", spread over scenarios {result.spread:.2f}"
        console.print(f"total of the {cells_name} cells: {format_score(result.total)}{spread}")
        for reference in references:
            console.print(f"  {reference.name}: {reference.total}", style="dim")


def _wide_table(result: ScoreTable, references: Sequence[ReferenceScores]) -> Table:
    """One row per red agent, one column per length."""
    table = Table(Column("red", no_wrap=True), box=box.SIMPLE_HEAD)
    for length in result.trial.lengths:
        table.add_column(f"{length} steps", justify="right", no_wrap=True)
    for red, scores in result.scores.items():
        table.add_row(red, *map(format_score, scores.values()))
        for reference in references:
            cells = (reference.cells[red].get(length, "") for length in result.trial.lengths)
            table.add_row(f"  {reference.name}", *cells, style="dim")
    return table


def _narrow_table(result: ScoreTable, references: Sequence[ReferenceScores]) -> Table:
    """One row per red agent and length."""
    columns = [Column(name, justify="right", no_wrap=True) for name in ("steps", "score")]
    table = Table(Column("red", no_wrap=True), *columns, box=box.SIMPLE_HEAD)
    for red, scores in result.scores.items():
        for length, score in scores.items():
            table.add_row(red, str(length), format_score(score))
            for reference in references:
                cell = reference.cells[red].get(length, "")
                table.add_row(f"  {reference.name}", "", cell, style="dim")
    return table


def figures_table(console: Console, first: str, columns: Sequence[str]) -> Table:
    """An empty table of a name and figures, without space between columns if that is scarce."""
    padding = (0, 1) if console.width >= FULL_WIDTH else (0, 0)
    figures = [Column(name, justify="right") for name in columns]
    return Table(Column(first, no_wrap=True), *figures, box=box.SIMPLE_HEAD, padding=padding)
