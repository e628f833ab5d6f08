"""Groups of contenders that need processes: they are there only as long as their group."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from multiprocessing import get_context

from cagepool.bench.measure import Contender, Measurement, Pace, compare

Make = Callable[[ExitStack], Contender]


def compared(
    groups: Iterator[tuple[str, list[Make]]],
    pace: Pace,
    progress: Callable[[str, int, int], object],
) -> dict[str, list[Measurement]]:
    """Measure group after group, each contender being there only as long as its group."""
    _preload()
    results: dict[str, list[Measurement]] = {}
    for name, contenders in groups:
        with ExitStack() as stack:
            members = [make(stack) for make in contenders]
            turns = pace.repetitions * len(members)
            steps = iter(range(1, turns + 1))
            results[name] = compare(
                members,
                pace,
                lambda name=name, steps=steps, turns=turns: progress(name, next(steps), turns),  # type: ignore[misc]
            )
    return results


def _preload() -> None:
    """Spare processes of other libraries the imports, which would take most of the time."""
    wanted = (
        "cagepool.bench.dummy_envs",
        "cagepool.bench.scripts.preload",
        "stable_baselines3.common.vec_env",
    )
    there = [name for name in wanted if find_spec(name.partition(".")[0])]
    get_context("forkserver").set_forkserver_preload(there)
