"""A scenario: hosts and subnets of a game; and the layout of spaces for several."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import compress
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from cagepool.errors import short_repr
from cagepool.scenarios.tables import Description, Tables, compile_tables, red_refusal
from cagepool.scenarios.vocabulary import (
    CAGE2_KINDS,
    HOST_TYPES,
    MAX_HOSTS,
    PLAIN_KINDS,
    RED_KINDS,
    index_of,
)
from cagepool.types import Int32s

Range: TypeAlias = int | tuple[int, int]
"""A number, or the least and the largest number."""

_DIGITS = re.compile("([0-9]+)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Scenario(Tables):
    """A scenario of CybORG's simulator that the core can play (docs/scenarios.md).

    Two scenarios are equal if they play the same game, whatever their names are, and have the same
    roles. All tables are tuples over hosts or subnets.
    """

    name: str
    roles: tuple[str | None, ...]  # host type of each host for workflow orders; None: of no type

    @classmethod
    def load(cls, path: str | PathLike[str], *, images: str | PathLike[str] | None = None) -> Self:
        """Read a scenario file of CybORG.

        Args:
            path: Of the file.
            images: Folder with image files of one's own, `name.yaml` each; the folder `images`
                beside the file by default.

        Raises:
            ValueError: the file cannot be read, or the rules do not cover it; the sentence names
                the field of the file.
        """
        from cagepool.scenarios.file_format import read_description  # noqa: PLC0415 - needs PyYAML

        file = Path(path)
        description = read_description(file, None if images is None else Path(images))
        return cls.from_description(description, file.stem)

    @classmethod
    def from_description(cls, description: Description, name: str) -> Self:
        """The scenario of a description whose names and values are valid."""
        return cls.from_tables(compile_tables(description), name)

    @classmethod
    def from_tables(cls, tables: Tables, name: str) -> Self:
        """The scenario of compiled tables."""
        content = {one.name: getattr(tables, one.name) for one in fields(Tables)}
        return cls(name=name, roles=tuple(map(_role, tables.hosts)), **content)

    @classmethod
    def generate(  # noqa: PLR0913 - one argument per property of a scenario
        cls,
        seed: int,
        *,
        users: Range = (3, 8),
        enterprise: Range = (2, 5),
        op_hosts: Range = (1, 4),
        subnets: Range | Literal["cage2"] = "cage2",
        images: Literal["cage2", "kinds", "any"] | Sequence[str] = "kinds",
        links: Literal["cage2", "random"] = "random",
        entry: Literal["User0", "random"] = "User0",
        reds: Sequence[str] = ("B_lineAgent", "RedMeanderAgent"),
    ) -> Self:
        """A random scenario that the given red agents can play.

        The same arguments give the same scenario on every machine and with every version of Python
        and NumPy.

        Args:
            seed: Random seed, at least 0.
            users: Number of hosts `User0`, `User1`, ...: a number, or the least and the largest.
            enterprise: Number of hosts `Enterprise0`, ...
            op_hosts: Number of hosts `Op_Host0`, ..., besides `Op_Server0`.
            subnets: `cage2` for the three subnets of CAGE-2; or the number of subnets, over which
                users, servers and operational hosts are spread at random.
            images: `cage2` for the images of CAGE-2 in turn; `kinds` to draw them from the images
                that hosts of the same type have there; `any` to draw them from all that red can
                take, and for users and operational hosts also from the others; or names of built-in
                images to draw from. Defender and Op_Server0 keep theirs.
            links: `cage2`: Windows users reveal Enterprise1, others Enterprise0; or `random`: each
                user reveals one or two servers, some hosts another one.
            entry: `User0`, or `random`: any user, and red knows User0 in half of the scenarios.
            reds: Red agents that must be able to play, by class name or alias.

        Raises:
            ValueError: an argument is out of range, or the red agents can play no scenario within
                these ranges.
        """
        from cagepool.scenarios.generator import (  # noqa: PLC0415 - only some need it
            GeneratorOptions,
            generate_tables,
        )

        options = GeneratorOptions(
            users=users,
            enterprise=enterprise,
            op_hosts=op_hosts,
            subnets=subnets,
            images=images,
            links=links,
            entry=entry,
            reds=reds,
        )
        return cls.from_tables(generate_tables(seed, options), f"generated/{seed}")

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write a scenario file that CybORG and `load` read.

        Images of one's own are named, but not written: CybORG reads them from its own folder.

        Raises:
            ValueError: the file exists and `overwrite` is false, or it cannot be written.
        """
        from cagepool.scenarios.file_format import write_tables  # noqa: PLC0415 - needs PyYAML

        write_tables(self, Path(path), overwrite=overwrite)

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """Names of blue's actions by index, such as `Restore User4`."""
        return action_names(self.action_kinds, self.hosts)

    @cached_property
    def red_actions(self) -> tuple[str, ...]:
        """Names of red's actions by index.

        Sleep, sweeps of subnets, three actions per host, Impact on the hosts with OTService.
        """
        sleep, sweep, *on_hosts, impact = RED_KINDS
        return (
            sleep,
            *(f"{sweep} {subnet}" for subnet in self.subnets),
            *(f"{kind} {host}" for kind in on_hosts for host in self.hosts),
            *(f"{impact} {host}" for host in compress(self.hosts, self.ot)),
        )

    def host_index(self, name: str) -> int:
        """Index of a host.

        Raises:
            ValueError: no host has that name.
        """
        return index_of(name, self.hosts, "a host")

    def action_index(self, name: str) -> int:
        """Index of a blue action, such as `Restore User4`.

        Raises:
            ValueError: blue has no such action.
        """
        return index_of(name, self.actions, "an action")

    def red_refusal(self, red: str) -> str | None:
        """Why a red agent, given by class name or alias, cannot play here; None if it can."""
        return red_refusal(self, red)

    def check_red(self, red: str) -> None:
        """Check that a red agent can play here.

        Raises:
            ValueError: it cannot; the sentence names the scenario and the reason.
        """
        reason = self.red_refusal(red)
        if reason is not None:
            raise ValueError(f"the scenario {self.name} cannot be played: {reason}")

    def with_roles(self, roles: Mapping[str, str | None]) -> Self:
        """A copy in which some hosts have other types for workflow orders, None for no type.

        Raises:
            ValueError: there is no such host or host type.
        """
        changed = [*self.roles]
        for host, role in roles.items():
            if role is not None and role not in HOST_TYPES:
                raise ValueError(
                    f"a role must be one of {', '.join(HOST_TYPES)} or None, got {role!r}"
                )
            changed[self.host_index(host)] = role
        return replace(self, roles=tuple(changed))

    def with_name(self, name: str) -> Self:
        """A copy with another name."""
        return replace(self, name=name)

    def slots(self, layout: "Layout") -> Int32s:
        """Slot of each host in a layout, (H,).

        Raises:
            ValueError: the layout has no slot for a host.
        """
        if layout.by_position:
            if len(self.hosts) > len(layout.slots):
                raise ValueError(
                    f"a layout must have a slot per host, got {len(layout.slots)} slots for "
                    f"{len(self.hosts)} hosts of the scenario {self.name}"
                )
            return np.arange(len(self.hosts), dtype=np.int32)
        missing = [host for host in self.hosts if host not in layout.slots]
        if missing:
            raise ValueError(
                f"a layout must have a slot per host, got none for {missing[0]} of the scenario "
                f"{self.name}"
            )
        return np.array([layout.slots.index(host) for host in self.hosts], dtype=np.int32)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario):
            return NotImplemented
        return self.hash == other.hash and self.roles == other.roles

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return (
            f"Scenario({self.name!r}, {len(self.hosts)} hosts, {len(self.subnets)} subnets, "
            f"{self.hash[:12]})"
        )


@dataclass(frozen=True)
class Layout:
    """Slots of hosts and kinds of actions in the spaces of environments.

    Observations have four columns per slot. Actions are those of `kinds` in order: one index for
    Sleep and Monitor, one index per slot for others.
    """

    slots: tuple[str, ...]  # names of hosts
    kinds: tuple[str, ...]  # kinds of blue's actions
    by_position: bool = False  # slot i is host i, whatever its name is

    def __post_init__(self) -> None:
        """Check that names are not repeated."""
        for noun, names in (("slots", self.slots), ("kinds", self.kinds)):
            if not names or len({*names}) < len(names):
                raise ValueError(f"{noun} must be different names, got {short_repr(names)}")

    @classmethod
    def of(cls, scenarios: Sequence[Scenario]) -> Self:
        """The default layout of one scenario or of several.

        Scenarios with the same hosts have these, in the same order. Otherwise each name of a host
        has a slot, in natural order, so that a host keeps its slot in all scenarios; if there are
        more than 64 names, slot i is host i.
        """
        if not scenarios:
            raise ValueError("a layout must be of at least one scenario, got none")
        kinds = _union_of_kinds({scenario.action_kinds: None for scenario in scenarios})
        hosts = {scenario.hosts: None for scenario in scenarios}
        if len(hosts) == 1:
            return cls(next(iter(hosts)), kinds)
        names = {name for some in hosts for name in some}
        if len(names) <= MAX_HOSTS:
            return cls(tuple(sorted(names, key=_natural_key)), kinds)
        most = max(map(len, hosts))
        return cls(tuple(f"host{i}" for i in range(most)), kinds, by_position=True)

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """Names of actions by index."""
        return action_names(self.kinds, self.slots)


def action_names(kinds: Sequence[str], hosts: Sequence[str]) -> tuple[str, ...]:
    """Names of blue's actions by index (docs/scenarios.md, section 2)."""
    names: list[str] = []
    for kind in kinds:
        names += [kind] if kind in PLAIN_KINDS else [f"{kind} {host}" for host in hosts]
    return tuple(names)


def _union_of_kinds(lists: Mapping[tuple[str, ...], Any]) -> tuple[str, ...]:
    """Kinds of the only list; of several, those of CAGE-2 first, in its order."""
    if len(lists) == 1:
        return next(iter(lists))
    found = dict.fromkeys(kind for kinds in lists for kind in kinds)
    usual = [kind for kind in CAGE2_KINDS if kind in found]
    return (*usual, *(kind for kind in found if kind not in usual))


def _role(host: str) -> str | None:
    """Host type by name as in Scenario2; User0 has none (docs/workflow.md, section 1)."""
    type_ = host.rstrip("0123456789").lower()
    return type_ if type_ in HOST_TYPES and host != "User0" else None


def _natural_key(name: str) -> tuple[object, ...]:
    """Sort key by which User10 comes after User9."""
    parts = _DIGITS.split(name)
    return (*zip(parts[::2], (*map(int, parts[1::2]), 0), strict=True), name)
