"""Engine compared with another build of cagepool, CybORG and MiniCAGE."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path

from benchmarks.suites.subprocess_timer import (
    SubprocessTimer,
    has_cyborg,
    time_cyborg,
    time_minicage,
    time_other_build,
)
from cagepool.bench.engine import ATTACKERS, FEW, MANY, batch_contender, cost
from cagepool.bench.measure import (
    Contender,
    Figures,
    Pace,
    Progress,
    measure_groups,
)
from cagepool.bench.schema import Groups, Settings

MINICAGE_GAMES = 1000  # where MiniCAGE is fastest


@dataclass(frozen=True, kw_only=True)
class EnginePeersConfig:
    """Settings of this bench; a peer without a setting is left out."""

    pace: Pace = field(default_factory=Pace)
    other_build: Path | None = None
    """Folder with another build of cagepool, such as one tuned for this processor."""
    cyborg_python: str | None = None
    """Python that can import CybORG; None: this one, if it can."""
    minicage: Path | None = None
    """Folder with the package `mini_CAGE`."""


def measure_engine_peers(config: EnginePeersConfig, progress: Progress) -> Figures:
    """Measure each peer interleaved with this build.

    Raises:
        ValueError: a peer is not where the configuration says.
    """
    with ExitStack() as stack:  # all processes start first: a missing peer is refused at once
        groups = [
            (name, [partial(_constant, one) for one in contenders])
            for name, contenders in _groups(config, stack)
        ]
        measured = measure_groups(groups, config.pace, progress)
    return Figures(groups=measured, ratios=peer_ratios(measured))


def peer_ratios(groups: Groups) -> dict[str, float]:
    """Cost of each peer, divided by the cost of this build."""
    return {name: round(value, 3) for name, value in _ratios(groups)}


def _ratios(groups: Groups) -> Iterator[tuple[str, float]]:
    for games, red in product((FEW, MANY), ATTACKERS) if "build" in groups else ():
        other = cost(groups["build"], "other build", games=games, red=red)
        ratio = other / cost(groups["build"], games=games, red=red)
        yield f"other build / this build, {games} games, {red}", ratio
    for group, peer, games in (
        ("cyborg", "CybORG", MANY),
        ("minicage", "MiniCAGE", MINICAGE_GAMES),
    ):
        for red in ATTACKERS if group in groups else ():
            ratio = cost(groups[group], peer, red=red) / cost(groups[group], red=red)
            yield f"{peer} / this build, {games} games, {red}", ratio


def _groups(config: EnginePeersConfig, stack: ExitStack) -> Iterator[tuple[str, list[Contender]]]:
    if config.other_build is not None:
        other = partial(time_other_build, config.other_build)
        yield (
            "build",
            [
                contender
                for games, red in product((FEW, MANY), ATTACKERS)
                for contender in (
                    _peer("other build", games, red, stack.enter_context(other(games, red))),
                    batch_contender(games, red=red),
                )
            ],
        )
    if config.cyborg_python is not None or has_cyborg(sys.executable):
        python = config.cyborg_python or sys.executable
        yield (
            "cyborg",
            [
                contender
                for red in ATTACKERS
                for contender in (
                    _peer("CybORG", 1, red, stack.enter_context(time_cyborg(python, red))),
                    batch_contender(MANY, red=red),
                )
            ],
        )
    if config.minicage is not None:
        minicage = partial(time_minicage, config.minicage, MINICAGE_GAMES)
        yield (
            "minicage",
            [
                contender
                for red in ATTACKERS
                for contender in (
                    _peer("MiniCAGE", MINICAGE_GAMES, red, stack.enter_context(minicage(red))),
                    batch_contender(MINICAGE_GAMES, red=red),
                )
            ],
        )


def _peer(name: str, games: int, red: str, timer: SubprocessTimer) -> Contender:
    settings: Settings = {"games": games, "red": red, "threads": 1}
    return Contender(name=name, settings=settings, steps_per_call=games, timer=timer)


def _constant(contender: Contender, _: ExitStack) -> Contender:
    return contender
