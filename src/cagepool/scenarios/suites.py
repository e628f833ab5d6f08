"""Named suites of random networks, split into training and test networks, that papers can cite.

The members of a suite are generated from the seeds in `suites.json`, which also holds a SHA-256 of
the hashes of all members: a suite never changes. Other networks need a new version of the suite.
`build_records` and `to_json` make the file.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypedDict

from cagepool import runs
from cagepool._lookup import suggestion
from cagepool.scenarios.cage2 import CAGE2, NETWORK
from cagepool.scenarios.generator import NetworkOptions, generate_tables
from cagepool.scenarios.scenario import Scenario
from cagepool.scenarios.vocabulary import CAGE1_KINDS

SPLITS = {"train": 1000, "test": 100}
"""Number of networks in each split."""
LISTED_REDS = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")

_FILE = Path(__file__).with_name("suites.json")
_NAME = re.compile(
    r"(?P<suite>[^:@]+)(?:@(?P<version>\d+))?:(?P<split>\w+)(?:/(?P<member>\d{1,9}))?"
)
_TEST_SHARE = 11  # one of so many networks is a test network


@dataclass(frozen=True)
class Suite:
    """How the networks of a suite differ from that of CAGE-2."""

    description: str
    options: NetworkOptions
    version: int = 1


_CAGE2_SIZE = NetworkOptions(users=5, enterprise=3, op_hosts=3, images="cage2", links="cage2")
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
        NetworkOptions(users=(14, 18), enterprise=(9, 11), op_hosts=(9, 13)),
    ),
}
CAGE1 = Scenario.from_network(replace(NETWORK, action_kinds=CAGE1_KINDS), "cage1")
"""The network of CAGE-2 with the actions of CAGE-1: Misinform in place of decoys."""
SINGLE_NETWORKS = {scenario.name: scenario for scenario in (CAGE2, CAGE1)}


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
    networks: int
    hosts: tuple[int, int]  # least and largest number
    subnets: tuple[int, int]
    reds: dict[str, int]  # number of networks that each red agent can play
    differs: str  # how the networks differ from that of CAGE-2
    sha256: str


def is_suite_name(name: str) -> bool:
    """Whether a name is that of a suite, such as `cage2/users:train`, or of one network."""
    match = _NAME.fullmatch(name)
    return name in SINGLE_NETWORKS or (match is not None and match["suite"] in SUITES)


def suite_scenarios(name: str) -> tuple[Scenario, ...]:
    """Networks of a suite.

    Args:
        name: `cage2`, `cage1`, a split such as `cage2/users:train`, one with its version such as
            `cage2/users@1:train`, or one of its members such as `cage2/users:train/17`.

    Raises:
        ValueError: there is no such suite, version, split or member.
        RuntimeError: the generator no longer makes the networks of the suite.
    """
    if name in SINGLE_NETWORKS:
        return (SINGLE_NETWORKS[name],)
    match = _NAME.fullmatch(name)
    if match is None or match["suite"] not in SUITES or match["split"] not in SPLITS:
        raise ValueError(
            f"a suite must be {', '.join(SINGLE_NETWORKS)}, or :train or :test of "
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
            "networks": len(record["seeds"]),
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
            f"the suite {name}:{split} must have its published networks, the generator of this "
            "version makes others"
        )
    return members


def _build_splits(suite: Suite) -> dict[str, dict[int, Scenario]]:
    """Members of each split by seed: different networks, other than that of CAGE-2."""
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
    return [*SINGLE_NETWORKS, *(f"{name}:{split}" for name in SUITES for split in SPLITS)]
