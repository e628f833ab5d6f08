"""Scenarios that a user names: objects, files, folders, suites, generators."""

from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from cagepool.errors import short_repr
from cagepool.scenarios.scenario import Scenario

GENERATED = 1000
"""Number of scenarios that are taken of a generator."""

ScenarioLike: TypeAlias = (
    Scenario
    | str
    | PathLike[str]
    | Callable[[int], Scenario]
    | Iterable["Scenario | str | PathLike[str]"]
)


def resolve_scenarios(value: ScenarioLike) -> tuple[Scenario, ...]:
    """Scenarios that a user gives.

    Args:
        value: A scenario, the path of a scenario file or of a folder of them, the name of a suite
            such as `cage2/users:train`, a sequence of these, or a generator: a function from a seed
            to a scenario, of which the seeds 0 to 999 are taken.

    Raises:
        ValueError: the value is none of these, a file is refused, or there is no scenario.
    """
    scenarios = _resolve(value)
    if not scenarios:
        raise ValueError(f"scenario must give at least one scenario, got {short_repr(value)}")
    return scenarios


def scenario_files(folder: Path) -> list[Path]:
    """Scenario files in a folder, by name.

    Raises:
        ValueError: there is none.
    """
    files = sorted((*folder.glob("*.yaml"), *folder.glob("*.yml")))
    if not files:
        raise ValueError(f"a folder of scenarios must have files *.yaml, {folder} has none")
    return files


def _resolve(value: object) -> tuple[Scenario, ...]:
    if isinstance(value, Scenario):
        return (value,)
    if isinstance(value, str | PathLike):
        return _named(value)
    if callable(value):
        return tuple(_generated(value, seed) for seed in range(GENERATED))
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return tuple(scenario for one in value for scenario in _resolve(one))
    raise ValueError(
        "scenario must be a Scenario, a scenario file, a folder of them, a suite, a sequence of "
        f"these, or a function from a seed to a Scenario; got {short_repr(value)}"
    )


def _named(value: str | PathLike[str]) -> tuple[Scenario, ...]:
    from cagepool.scenarios import suites  # noqa: PLC0415 - reads a file with msgspec

    path = Path(value)
    if isinstance(value, str) and suites.is_suite_name(value):
        return suites.suite_scenarios(value)
    if path.is_dir():
        return tuple(Scenario.load(file) for file in scenario_files(path))
    if isinstance(value, str) and path.suffix not in (".yaml", ".yml") and not path.exists():
        return suites.suite_scenarios(value)
    return (Scenario.load(path),)


def _generated(generator: Callable[[int], object], seed: int) -> Scenario:
    scenario = generator(seed)
    if not isinstance(scenario, Scenario):
        raise ValueError(
            f"a generator of scenarios must return a Scenario, got {short_repr(scenario)}"
        )
    return scenario
