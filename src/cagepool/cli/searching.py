"""How a search goes, for people to watch: a live table, or plain lines where none can be."""

import time

from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table

from cagepool.cli.watching import LINE_SECONDS, Watching
from cagepool.search.config import SearchConfig
from cagepool.search.records import Decision
from cagepool.search.ucb import Outlook
from cagepool.sim.orders import ALL_ORDERS
from cagepool.train.evaluation import Check
from cagepool.train.logging import Row

BEST = 3  # orders whose posterior is shown


class SearchDisplay(Watching):
    """Listens to a search and shows it."""

    def __init__(self, console: Console, config: SearchConfig) -> None:
        """Show a search with these settings."""
        super().__init__(console, keep=False)
        self._config = config
        self._decision: Decision | None = None
        self._believed: Outlook | None = None
        self._spent = 0
        self._printed = time.monotonic()

    def decided(self, decision: Decision, believed: Outlook | None, spent: int) -> None:
        """Show which order comes next, and why."""
        self._decision, self._believed, self._spent = decision, believed, spent
        if not self._console.is_terminal:
            expected = "" if decision.mean is None else f", expected {_shown(decision)}"
            budget = f"{spent:,}/{self._config.total_episodes:,} episodes spent"
            self._say(
                f"{decision.iteration}: {decision.order} ({decision.why}{expected}; {budget})"
            )
        elif self._config.backend == "ray":  # nobody tells of its updates
            self._live.update(self._picture(None))

    def updated(self, row: Row) -> None:
        """Show an update."""
        if self._console.is_terminal:
            self._live.update(self._picture(row))
        elif time.monotonic() - self._printed >= LINE_SECONDS:
            self._printed = time.monotonic()
            self._say(f"   {_state(row)}")

    def checked(self, _row: Row, _check: Check, *, is_best: bool) -> None:
        """Checks are of no account here."""

    def trained(self, decision: Decision) -> None:
        """Say what came of an order."""
        compliance = "undefined" if decision.compliance is None else f"{decision.compliance:.3f}"
        reward = f"{decision.reward:.2f} ± {decision.standard_error:.2f}"
        anew = f", begun anew {decision.repeated} times" if decision.repeated else ""
        self._say(
            f"   {decision.order}: {decision.outcome} after {decision.episodes:,} episodes, "
            f"reward {reward}, compliance {compliance}{anew}"
        )

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)

    def _picture(self, row: Row | None) -> Table:
        total = self._config.total_episodes
        spent = self._spent + (int(row["episodes"]) if row else 0)
        table = Table.grid(padding=(0, 2))
        table.add_row("", ProgressBar(total=total, completed=spent, width=50))
        table.add_row("episodes", f"{spent:,} of {total:,}")
        if self._decision is not None:
            table.add_row(f"order {self._decision.iteration}", self._decision.order)
        if row is not None:
            table.add_row("", _state(row))
        if self._believed is not None:
            for number in (-self._believed.mean).argsort(kind="stable")[:BEST]:
                expected = f"{self._believed.mean[number]:.2f} ± {self._believed.std[number]:.2f}"
                table.add_row("posterior", f"{ALL_ORDERS[number]}  {expected}")
        return table


def _shown(decision: Decision) -> str:
    return f"{decision.mean:.2f} ± {decision.std:.2f}"


def _state(row: Row) -> str:
    kept = "-" if row.get("compliance") is None else f"{row['compliance']:.3f}"
    return (
        f"{row['episodes']:,.0f} episodes  return {row['return_mean']:.2f}  compliance {kept}  "
        f"entropy {row['entropy']:.2f}"
    )
