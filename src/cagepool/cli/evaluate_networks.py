"""`cagepool evaluate --scenario`: a table of scores over networks."""

from rich.console import Console
from rich.table import Table

from cagepool.cli.tables import figures_table
from cagepool.evaluate.network_evaluation import NetworkEvaluation
from cagepool.evaluate.network_scores import NetworkScores

SHOWN_NETWORKS = 3  # worst and best ones below the table


def print_networks(console: Console, result: NetworkEvaluation) -> None:
    """Print one row per defender, then the networks that are worst and best for the policy."""
    trial, scores = result.trial, result.scores
    count = len(scores.networks)
    what = f"{result.label}: {count} network{'' if count == 1 else 's'}, edition {trial.edition}"
    console.print(f"{what}, {trial.episodes} games per network and red", soft_wrap=True)
    cells = f"{len(result.reds)} reds x {len(trial.lengths)} lengths"
    console.print(f"total reward, sum of {cells}; ± standard error and spread over networks")
    reds = (red.removesuffix("Agent").removeprefix("Red") for red in result.reds)
    table = figures_table(console, "defender", ["total", "±", "spread", *reds])
    _add_row(table, scores.defender, scores)
    if result.training is not None:
        count = len(result.training.networks)
        _add_row(table, f"  in training ({count})", result.training)
    if result.native is not None:
        _add_row(table, "  native", result.native)
    for baseline in result.baselines:
        _add_row(table, baseline.defender, baseline)
    console.print(table)
    if result.gap is not None:
        console.print(f"gap to the training networks: {result.gap:+.2f}")
    if result.native is not None:
        worst = max(map(abs, scores.differences(result.native)))
        console.print(f"largest difference between CybORG and native: {worst:.1f} standard errors")
    ranked = sorted(zip(scores.totals.tolist(), scores.networks, strict=True))
    if len(ranked) > 2 * SHOWN_NETWORKS:
        for name, some in (("worst", ranked[:SHOWN_NETWORKS]), ("best", ranked[-SHOWN_NETWORKS:])):
            shown = ", ".join(f"{network} {total:.2f}" for total, network in some)
            console.print(f"{name}: {shown}", soft_wrap=True)


def _add_row(table: Table, name: str, scores: NetworkScores) -> None:
    is_single = len(scores.networks) == 1
    over_networks = (scores.standard_error, scores.spread)
    formatted = ("-" if is_single else f"{value:.1f}" for value in over_networks)
    by_red = (f"{cells.sum(1).mean():.1f}" for cells in scores.cells.values())
    table.add_row(name, f"{scores.mean:.1f}", *formatted, *by_red)
