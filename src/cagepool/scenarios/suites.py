"""Named suites of random scenarios, split into training and test scenarios, that papers can cite.

The members of a suite are generated from the seeds in `suites.json`, which also holds a SHA-256 of
the hashes of all members: a suite never changes. Other scenarios need a new version of the suite.
`build_records` and `to_json` make the file.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TypeAlias, TypedDict

from cagepool._lookup import suggestion
from cagepool.errors import short_repr
from cagepool.scenarios.cage2 import CAGE2, DESCRIPTION
from cagepool.scenarios.generator import GeneratorOptions, generate_tables
from cagepool.scenarios.scenario import Scenario
from cagepool.scenarios.vocabulary import CAGE1_KINDS

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
    """Scenario files in a folder, by name."""
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
    path = Path(value)
    if isinstance(value, str) and is_suite_name(value):
        return suite_scenarios(value)
    if path.is_dir():
        return tuple(Scenario.load(file) for file in scenario_files(path))
    if isinstance(value, str) and path.suffix not in (".yaml", ".yml") and not path.exists():
        return suite_scenarios(value)
    return (Scenario.load(path),)


def _generated(generator: Callable[[int], object], seed: int) -> Scenario:
    scenario = generator(seed)
    if not isinstance(scenario, Scenario):
        raise ValueError(
            f"a generator of scenarios must return a Scenario, got {short_repr(scenario)}"
        )
    return scenario


SPLITS = {"train": 1000, "test": 100}
"""Number of scenarios in each split."""
LISTED_REDS = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")

_FILE = Path(__file__).with_name("suites.json")
_NAME = re.compile(
    r"(?P<suite>[^:@]+)(?:@(?P<version>\d+))?:(?P<split>\w+)(?:/(?P<member>\d{1,9}))?"
)
_TEST_SHARE = 11  # one of so many scenarios is a test scenario


@dataclass(frozen=True)
class Suite:
    """How the scenarios of a suite differ from CAGE-2."""

    description: str
    options: GeneratorOptions
    version: int = 1


_CAGE2_SIZE = GeneratorOptions(users=5, enterprise=3, op_hosts=3, images="cage2", links="cage2")
SUITES = {
    "cage2/users": Suite(
        "3 to 8 users, images of users and servers drawn from those of their type",
        replace(_CAGE2_SIZE, users=(3, 8), images="kinds"),
    ),
    "cage2/images": Suite(
        "any image on users, servers and operational hosts", replace(_CAGE2_SIZE, images="any")
    ),
    "cage2/links": Suite("which host reveals which", replace(_CAGE2_SIZE, links="random")),
    "cage2/entry": Suite(
        "red starts on any user and may know User0; images and links vary",
        replace(
            _CAGE2_SIZE,
            images="kinds",
            links="random",
            entry="random",
            reds=("RedMeanderAgent",),
        ),
    ),
    "cage2/layout": Suite(
        "1 to 5 subnets, which of them are gated, and the order of their members",
        replace(_CAGE2_SIZE, subnets=(1, 5)),
    ),
    "cage2/x3": Suite(
        "three times the hosts",
        GeneratorOptions(users=(14, 18), enterprise=(9, 11), op_hosts=(9, 13)),
    ),
}
CAGE1 = Scenario.from_description(replace(DESCRIPTION, action_kinds=CAGE1_KINDS), "cage1")
"""CAGE-2 with the actions of CAGE-1: Misinform in place of decoys."""
SINGLE_SCENARIOS = {scenario.name: scenario for scenario in (CAGE2, CAGE1)}


class SplitRecord(TypedDict):
    """A split in `suites.json`."""

    sha256: str  # of the hashes of the members, one per line
    hosts: tuple[int, int]  # least and largest number
    subnets: tuple[int, int]
    reds: dict[str, int]  # number of members that each red agent can play
    seeds: list[int]


class SuiteRow(TypedDict):
    """Properties of a split."""

    suite: str  # such as `cage2/users@1:train`
    scenarios: int
    hosts: tuple[int, int]  # least and largest number
    subnets: tuple[int, int]
    reds: dict[str, int]  # number of scenarios that each red agent can play
    differs: str  # how the scenarios differ from CAGE-2
    sha256: str


def is_suite_name(name: str) -> bool:
    """Whether a name is that of a suite, such as `cage2/users:train`, or of one scenario."""
    match = _NAME.fullmatch(name)
    return name in SINGLE_SCENARIOS or (match is not None and match["suite"] in SUITES)


def suite_scenarios(name: str) -> tuple[Scenario, ...]:
    """Scenarios of a suite.

    Args:
        name: `cage2`, `cage1`, a split such as `cage2/users:train`, one with its version such as
            `cage2/users@1:train`, or one of its members such as `cage2/users:train/17`.

    Raises:
        ValueError: there is no such suite, version, split or member.
        RuntimeError: the generator no longer makes the scenarios of the suite.
    """
    if name in SINGLE_SCENARIOS:
        return (SINGLE_SCENARIOS[name],)
    match = _NAME.fullmatch(name)
    if match is None or match["suite"] not in SUITES or match["split"] not in SPLITS:
        raise ValueError(
            f"a suite must be {', '.join(SINGLE_SCENARIOS)}, or :train or :test of "
            f"{', '.join(SUITES)}; got {name!r}{suggestion(name, _split_names())}"
        )
    suite = SUITES[match["suite"]]
    if match["version"] is not None and int(match["version"]) != suite.version:
        raise ValueError(
            f"the version of the suite {match['suite']} must be {suite.version}, got {name!r}"
        )
    members = _members(match["suite"], match["split"])
    if match["member"] is None:
        return members
    if int(match["member"]) >= len(members):
        raise ValueError(f"a member of a suite must be below {len(members)}, got {name!r}")
    return (members[int(match["member"])],)


def suite_table() -> list[SuiteRow]:
    """Properties of all suites: one row per split."""
    return [
        {
            "suite": f"{name}:{split}",
            "scenarios": len(record["seeds"]),
            "hosts": record["hosts"],
            "subnets": record["subnets"],
            "reds": record["reds"],
            "differs": SUITES[name.partition("@")[0]].description,
            "sha256": record["sha256"],
        }
        for name, splits in suite_records().items()
        for split, record in splits.items()
    ]


@cache
def suite_records() -> dict[str, dict[str, SplitRecord]]:
    """Splits of all suites by name with version, as committed."""
    from cagepool import runs  # noqa: PLC0415 - needs msgspec

    return runs.read_json(_FILE, dict[str, dict[str, SplitRecord]])


def build_records() -> dict[str, dict[str, SplitRecord]]:
    """The content of `suites.json`, made anew from the definitions."""
    return {
        f"{name}@{suite.version}": {
            split: _record(found) for split, found in _build_splits(suite).items()
        }
        for name, suite in SUITES.items()
    }


def to_json(records: dict[str, dict[str, SplitRecord]]) -> str:
    """Text of `suites.json`: one line per split."""
    suites = (
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f"{json.dumps(split)}: {json.dumps(one)}" for split, one in splits.items())
        + "\n}"
        for name, splits in records.items()
    )
    return "{\n" + ",\n".join(suites) + "\n}\n"


@cache
def _members(name: str, split: str) -> tuple[Scenario, ...]:
    suite = SUITES[name]
    record = suite_records()[f"{name}@{suite.version}"][split]
    members = tuple(
        Scenario.from_tables(generate_tables(seed, suite.options), f"{name}:{split}/{i}")
        for i, seed in enumerate(record["seeds"])
    )
    if _digest(members) != record["sha256"]:
        raise RuntimeError(
            f"the suite {name}:{split} must have its published scenarios, the generator of this "
            "version makes others"
        )
    return members


def _build_splits(suite: Suite) -> dict[str, dict[int, Scenario]]:
    """Members of each split by seed: different scenarios, other than CAGE-2."""
    found: dict[str, dict[int, Scenario]] = {split: {} for split in SPLITS}
    seen = {CAGE2.hash}
    for seed, scenario in _candidates(suite):
        split = "train" if int(scenario.hash, 16) % _TEST_SHARE else "test"
        if scenario.hash not in seen and len(found[split]) < SPLITS[split]:
            found[split][seed] = scenario
            seen.add(scenario.hash)
        if all(len(found[split]) == count for split, count in SPLITS.items()):
            break
    return found


def _candidates(suite: Suite) -> Iterator[tuple[int, Scenario]]:
    for seed in range(100_000):
        yield seed, Scenario.from_tables(generate_tables(seed, suite.options), str(seed))


def _record(found: dict[int, Scenario]) -> SplitRecord:
    members = tuple(found.values())
    hosts = [len(member.hosts) for member in members]
    subnets = [len(member.subnets) for member in members]
    return {
        "sha256": _digest(members),
        "hosts": (min(hosts), max(hosts)),
        "subnets": (min(subnets), max(subnets)),
        "reds": {
            red: sum(member.red_refusal(red) is None for member in members) for red in LISTED_REDS
        },
        "seeds": [*found],
    }


def _digest(members: tuple[Scenario, ...]) -> str:
    return hashlib.sha256("\n".join(member.hash for member in members).encode()).hexdigest()


def _split_names() -> list[str]:
    return [*SINGLE_SCENARIOS, *(f"{name}:{split}" for name in SUITES for split in SPLITS)]
