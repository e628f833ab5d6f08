"""Content of the run page, read from run folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any

from cagepool.evaluate.policy import CAGE_ENVS
from cagepool.evaluate.rollout import OFFICIAL_LENGTHS
from cagepool.runs import Columns, Run, open_run
from cagepool.runs.schema import GAMES, EvaluationFile, GamesFile, RecordedNetwork, WorkflowFile
from cagepool.scenarios.vocabulary import MAX_HOSTS
from cagepool.sim.names import HOST_SUBNET


@dataclass(frozen=True)
class RunData:
    """A run as the page shows it."""

    name: str
    path: Path
    settings: dict[str, Any]
    metrics: Columns
    checks: Columns
    evaluation: EvaluationFile | None  # none: not evaluated yet
    games: GamesFile | None
    outcome: WorkflowFile | None = None  # none: trained without an order, or not finished

    @property
    def env_id(self) -> str:
        """Id of the environment, or an empty text."""
        return str(self.settings.get("env", {}).get("id", ""))

    @property
    def edition(self) -> str:
        """Edition of the game."""
        return str(self.settings.get("env", {}).get("edition", ""))

    @property
    def red_agent(self) -> str:
        """Red agent of the training."""
        return str(self.settings.get("env", {}).get("red_agent", ""))

    @property
    def averages_lengths(self) -> bool:
        """Whether the evaluations of an older folder average several lengths of an episode.

        Their returns of whole episodes are not known.
        """
        steps = int(self.settings.get("env", {}).get("max_steps", 0))
        several_lengths = self.is_cage and steps > OFFICIAL_LENGTHS[0]
        return several_lengths and self._has_check("score") and not self._has_check("return_mean")

    @property
    def evaluations(self) -> Columns:
        """Periodic evaluations: episodes, score that selects the best policy, mean and error.

        The mean is that of returns, or of scores where only these are known.
        """
        has_returns = self._has_check("return_mean")
        mean, error = (
            ("return_mean", "return_error") if has_returns else ("score", "standard_error")
        )
        names = {"episodes": "episodes", "score": "score", "mean": mean, "error": error}
        return {name: self.checks.get(column, []) for name, column in names.items()}

    def _has_check(self, column: str) -> bool:
        return any(isfinite(value) for value in self.checks.get(column, []))

    @property
    def is_cage(self) -> bool:
        """Whether the run plays CAGE-2, which `cagepool evaluate` requires."""
        return self.env_id in CAGE_ENVS


def read_runs(paths: Sequence[Path]) -> list[RunData]:
    """Read run folders; each run gets the shortest unique name.

    Raises:
        ValueError: a path is not a run folder, is damaged, or is given twice.
    """
    resolved = [path.resolve() for path in paths]
    for path in resolved:
        if resolved.count(path) > 1:
            raise ValueError(f"each run must be given once, got {path} twice")
    runs = [open_run(path) for path in paths]
    return [_read(run, name) for run, name in zip(runs, short_names(resolved), strict=True)]


def short_names(paths: Sequence[Path]) -> list[str]:
    """The last components of each path, as many as make the names unique."""
    depth = max(len(path.parts) for path in paths)
    for count in range(1, depth):
        names = ["/".join(path.parts[-count:]) for path in paths]
        if len({*names}) == len(names):
            return names
    return [str(path) for path in paths]


def _read(run: Run, name: str) -> RunData:
    return RunData(
        name=name,
        path=run.path,
        settings=dict(run.settings),
        metrics=_with_wasted_fixes_per_episode(run.metrics()),
        checks=run.checks(),
        evaluation=run.evaluation(),
        games=_games(run),
        outcome=run.workflow(),
    )


def _with_wasted_fixes_per_episode(metrics: Columns) -> Columns:
    """Compute the column for updates of older versions, which have the sum of their episodes."""
    name = "wasted_fixes_per_episode"
    ended = [end - start for start, end in pairwise([0.0, *metrics.get("episodes", [])])]
    known = metrics.get(name, [nan] * len(ended))
    sums = metrics.get("wasted_fixes", known)
    per_episode = [
        wasted / episodes if isnan(value) and episodes else value
        for value, wasted, episodes in zip(known, sums, ended, strict=True)
    ]
    return {**metrics, name: per_episode}


def _games(run: Run) -> GamesFile | None:
    """Recorded games, checked for what the replay needs."""
    games = run.games()
    path = run.path / GAMES
    if games and sorted(games.hosts) != sorted(HOST_SUBNET):
        raise ValueError(f"{path} must have the 13 hosts of the game, got {games.hosts}")
    if games and not all(game.turns for game in games.games):
        raise ValueError(f"{path} must have a step in every game, which it lacks")
    for game in games.games if games else ():
        if game.network:
            _check_network(path, game.network)
    return games


def _check_network(path: Path, network: RecordedNetwork) -> None:
    """Raise if the network of a game cannot be drawn."""
    drawn = [host for hosts in network.zones.values() for host in hosts]
    named = {network.foothold, network.defender, *network.targets, *chain(*network.links)}
    if sorted(drawn) != sorted({*network.hosts}) or not named <= {*drawn}:
        raise ValueError(f"{path} must have each host of {network.name} in one zone, got {drawn}")
    if not 1 <= len(drawn) <= MAX_HOSTS:
        raise ValueError(f"{path} must have 1 to {MAX_HOSTS} hosts per network, got {len(drawn)}")
