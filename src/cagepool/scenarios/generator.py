"""Random scenarios of the shape of CAGE-2 (`Scenario.generate`).

The draws are those of SplitMix64 and depend on the seed only, on every machine and with every
version of Python and NumPy. A change of this module that changes scenarios needs new versions of
the suites (`suites.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_letters
from typing import TypeVar

from cagepool.errors import short_repr
from cagepool.scenarios.images import IMAGES
from cagepool.scenarios.tables import (
    ADDRESS,
    ALL,
    Description,
    Host,
    Link,
    Subnet,
    Tables,
    compile_tables,
    red_refusal,
)
from cagepool.scenarios.vocabulary import CAGE2_KINDS, MAX_HOSTS, red_class_name

MAX_GENERATED_SUBNETS = 8
ATTEMPTS = 100

Item = TypeVar("Item")

_WORD = 2**64
_USER_IMAGES = (
    "windows_user_host1",
    "windows_user_host2",
    "linux_user_host1",
    "linux_user_host2",
)
_SERVER_IMAGES = ("Gateway", "Internal")
_OP_IMAGES = ("Gateway",)
_FIXED_IMAGES = {"Defender": "Velociraptor_Server", "Op_Server0": "OP_Server"}
_UNTAKEABLE = ("Velociraptor_Server", "Kali_Box")


@dataclass(frozen=True, kw_only=True)
class GeneratorOptions:
    """Ranges of random scenarios; the fields are those of `Scenario.generate`."""

    users: int | tuple[int, int] = (3, 8)
    enterprise: int | tuple[int, int] = (2, 5)
    op_hosts: int | tuple[int, int] = (1, 4)
    subnets: int | tuple[int, int] | str = "cage2"
    images: str | Sequence[str] = "kinds"
    links: str = "random"
    entry: str = "User0"
    reds: Sequence[str] = ("B_lineAgent", "RedMeanderAgent")

    def __post_init__(self) -> None:
        """Check all fields."""
        most = _bounds("users", self.users, 2)[1] + _bounds("enterprise", self.enterprise, 1)[1]
        most += _bounds("op_hosts", self.op_hosts, 0)[1] + len(_FIXED_IMAGES)
        if most > MAX_HOSTS:
            raise ValueError(
                f"users, enterprise and op_hosts must give at most {MAX_HOSTS} hosts with "
                f"Defender and Op_Server0, got up to {most}"
            )
        self._check_subnets()
        _check_choice("links", self.links, ("cage2", "random"))
        _check_choice("entry", self.entry, ("User0", "random"))
        if isinstance(self.images, str):
            _check_choice("images", self.images, ("cage2", "kinds", "any"))
        elif not self.images or not {*self.images} <= IMAGES.keys():
            raise ValueError(
                f"images must be cage2, kinds, any or names of {', '.join(IMAGES)}; "
                f"got {short_repr(self.images)}"
            )
        for red in self.reds:
            red_class_name(red)

    def _check_subnets(self) -> None:
        if self.subnets == "cage2":
            return
        if _bounds("subnets", self.subnets, 1)[1] > MAX_GENERATED_SUBNETS:
            raise ValueError(
                f"subnets must be at most {MAX_GENERATED_SUBNETS}, got {self.subnets!r}"
            )


def generate_tables(seed: int, options: GeneratorOptions) -> Tables:
    """A random scenario that all red agents of the options can play."""
    if type(seed) is not int or seed < 0:
        raise ValueError(f"seed must be a whole number, at least 0, got {short_repr(seed)}")
    for attempt in range(ATTEMPTS):
        tables = compile_tables(_ScenarioDraw(Draws(seed, attempt), options).description())
        reasons = [reason for red in options.reds if (reason := red_refusal(tables, red))]
        if not reasons:
            return tables
    raise ValueError(
        f"reds must be able to play scenarios within these ranges, in {ATTEMPTS} attempts none "
        f"could be played: {reasons[0]}"
    )


class Draws:
    """Random draws by SplitMix64."""

    def __init__(self, seed: int, stream: int = 0) -> None:
        """Draws of a seed; streams of the same seed are independent."""
        self._state = _mix(_mix(seed % _WORD) + seed // _WORD + stream)

    def below(self, count: int) -> int:
        """A whole number from 0 to count - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) % _WORD
        return _mix(self._state) * count // _WORD

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high."""
        return low + self.below(high - low + 1)

    def chance(self, parts: int, whole: int) -> bool:
        """True with a probability of parts / whole."""
        return self.below(whole) < parts

    def choice(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[Item], count: int) -> list[Item]:
        """Different items in random order."""
        pool = [*items]
        for i in range(count):
            other = i + self.below(len(pool) - i)
            pool[i], pool[other] = pool[other], pool[i]
        return pool[:count]


class _ScenarioDraw:
    """Draws one scenario."""

    def __init__(self, draws: Draws, options: GeneratorOptions) -> None:
        self._draws = draws
        self._options = options
        self._users = self._names("User", options.users)
        self._servers = self._names("Enterprise", options.enterprise)
        self._ops = ["Op_Server0", *self._names("Op_Host", options.op_hosts)]
        hosts = ("Defender", *self._servers, *self._ops[1:], "Op_Server0", *self._users)
        self._images = {host: self._image(host) for host in hosts}

    def description(self) -> Description:
        """The scenario, which some red agents may be unable to play."""
        draws = self._draws
        is_random = self._options.entry == "random"
        entry = draws.choice(self._users) if is_random else "User0"
        known = {entry: ALL}
        if is_random and draws.chance(1, 2):
            known["User0"] = ALL
        subnets = (
            self._cage2_subnets() if self._options.subnets == "cage2" else self._subnets(entry)
        )
        links = {name: self._own_links(name) for name in self._images}
        self._link_users(links)
        self._link_neighbors(links, subnets)
        self._link_thirds(links, subnets)
        self._bridge_subnets(links, subnets, entry)
        names = frozenset(self._images)
        return Description(
            hosts=tuple(self._host(name, links[name], entry) for name in self._images),
            subnets=subnets,
            entry=entry,
            known=known,
            action_kinds=CAGE2_KINDS,
            agents=names,
            monitored=names,
            order_of_play=("Blue", "Green", "Red"),
            scannable=names,
        )

    def _names(self, kind: str, bounds: int | tuple[int, int]) -> list[str]:
        low, high = _bounds(kind, bounds, 0)
        return [f"{kind}{i}" for i in range(self._draws.between(low, high))]

    def _image(self, host: str) -> str:
        images, draws = self._options.images, self._draws
        if host in _FIXED_IMAGES:
            return _FIXED_IMAGES[host]
        if images == "cage2":
            return _cage2_image(host)
        if images == "kinds":
            return draws.choice(_images_of_kind(host))
        if images == "any":
            is_server = host.startswith("Enterprise")
            return draws.choice(
                [name for name in IMAGES if not (is_server and name in _UNTAKEABLE)]
            )
        return draws.choice(images)

    def _host(self, name: str, links: dict[str, Link], entry: str) -> Host:
        values = ("Low", "Low")
        if name == entry:
            values = ("None", "None")
        elif name.startswith("User"):
            values = ("Low", "None")
        elif name.startswith("Enterprise"):
            values = ("Medium", "Medium")
        elif name == "Op_Server0":
            values = ("Medium", "High")
        return Host(name, IMAGES[self._images[name]], links, *values)

    def _cage2_subnets(self) -> dict[str, Subnet]:
        """The subnets of CAGE-2, the Operational one behind the gate."""
        servers = (*self._servers, "Defender")
        if len(self._servers) < 3:  # B_line's third target is then a server, as in CAGE-2
            servers = ("Defender", *self._servers)
        return {
            "Enterprise": Subnet(servers),
            "Operational": Subnet(tuple(self._ops), {"User": "None", "all": "all"}),
            "User": Subnet(tuple(self._users)),
        }

    def _subnets(self, entry: str) -> dict[str, Subnet]:
        """Subnets that users, servers and operational hosts are spread over."""
        parts = self._parts(self._draws.between(*_bounds("subnets", self._options.subnets, 1)))
        home = next(i for i, (_, members) in enumerate(parts) if entry in members)
        subnets = {}
        for i, (is_gated, members) in enumerate(parts):
            lets_in = {"all": "all"}
            if is_gated and i != home:
                lets_in = {f"Net{home}": "None", "all": "all"}
            subnets[f"Net{i}"] = Subnet(tuple(members), lets_in)
        return subnets

    def _parts(self, count: int) -> list[tuple[bool, list[str]]]:
        """Members of each subnet, and whether it is gated."""
        draws = self._draws
        groups = [self._users, [*self._servers, "Defender"], self._ops]
        while len(groups) > count:  # neighbors share a subnet
            i = draws.below(len(groups) - 1)
            groups[i : i + 2] = [groups[i] + groups[i + 1]]
        parts = [[group] for group in groups]
        while sum(map(len, parts)) < count:
            splittable = [
                part for part in parts if max(map(len, part)) >= (8 if "Defender" in part[0] else 4)
            ]
            if not splittable:
                break
            part = draws.choice(splittable)
            part.sort(key=len)
            members = draws.sample(part[-1], len(part[-1]))
            least = 3 if any("Defender" in some for some in part) else 2
            cut = draws.between(least, len(members) - least)
            part[-1:] = [members[:cut], members[cut:]]
        return [
            (self._is_gated(members), self._order(members)) for part in parts for members in part
        ]

    def _is_gated(self, members: list[str]) -> bool:
        """Subnets without servers may be gated; those of operational hosts mostly are."""
        if any(name.startswith("Enterprise") for name in members):
            return False
        return self._draws.chance(3, 4) if "Op_Server0" in members else self._draws.chance(1, 4)

    def _order(self, members: list[str]) -> list[str]:
        """Members in random order, in which Defender is not third."""
        order = self._draws.sample(members, len(members))
        if len(order) > 2 and order[2] == "Defender":
            order[1], order[2] = order[2], order[1]
        return order

    def _own_links(self, name: str) -> dict[str, Link]:
        """What a host reveals about itself."""
        if name == "Defender":
            return {}
        return {name: Link(ALL, service=IMAGES[self._images[name]].ot)}

    def _link_users(self, links: dict[str, dict[str, Link]]) -> None:
        draws = self._draws
        if self._options.links == "cage2":
            for user in self._users[1:]:
                number = int(IMAGES[self._images[user]].windows and len(self._servers) > 1)
                links[user][f"Enterprise{number}"] = Link(ADDRESS)
            return
        for user in self._users:
            is_first = user == "User0"  # as in CAGE-2, it reveals nobody, or sometimes a server
            count = draws.between(0, 1) if is_first else draws.between(1, 2)
            for server in draws.sample(self._servers, min(count, len(self._servers))):
                links[user][server] = Link(ADDRESS)
        for name in (*self._servers, *self._ops):
            if draws.chance(1, 4):
                other = draws.choice((*self._servers, *self._ops))
                links[name].setdefault(other, Link(ADDRESS))

    def _link_neighbors(
        self, links: dict[str, dict[str, Link]], subnets: dict[str, Subnet]
    ) -> None:
        """Let all hosts beside User0 reveal a server, since B_line starts with any of them."""
        (neighbors,) = (subnet.members for subnet in subnets.values() if "User0" in subnet.members)
        for name in neighbors:
            known = (name, *links[name])
            if name != "User0" and not any("Enterprise" in other for other in known):
                links[name][self._draws.choice(self._servers)] = Link(ADDRESS)

    def _link_thirds(self, links: dict[str, dict[str, Link]], subnets: dict[str, Subnet]) -> None:
        """Let B_line's third target reveal Op_Server0."""
        for subnet in subnets.values():
            if len(subnet.members) > 2 and any("Enterprise" in name for name in subnet.members):
                links[subnet.members[2]].setdefault("Op_Server0", Link(ADDRESS))

    def _bridge_subnets(
        self, links: dict[str, dict[str, Link]], subnets: dict[str, Subnet], entry: str
    ) -> None:
        """Let a host outside of each subnet, except red's first one, reveal one of its members."""
        for subnet in subnets.values():
            outside = [name for name in self._images if name not in subnet.members]
            if entry in subnet.members or any(
                links[name].keys() & {*subnet.members} for name in outside
            ):
                continue
            source = self._draws.choice([name for name in outside if name != "Defender"])
            links[source][self._draws.choice(subnet.members)] = Link(ADDRESS)


def _mix(value: int) -> int:
    """The output function of SplitMix64."""
    value %= _WORD
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % _WORD
    return value ^ (value >> 31)


def _cage2_image(host: str) -> str:
    """Image in CAGE-2; further hosts have those of their type in turn."""
    number = int(host.lstrip(f"{ascii_letters}_"))
    if host.startswith("User"):
        return _USER_IMAGES[(number - 1) % 4] if number else "windows_user_host1"
    if host.startswith("Enterprise"):
        return ("Gateway", "Internal", "Internal")[number % 3]
    return "Gateway"


def _images_of_kind(host: str) -> tuple[str, ...]:
    if host.startswith("User"):
        return _USER_IMAGES
    return _SERVER_IMAGES if host.startswith("Enterprise") else _OP_IMAGES


def _bounds(name: str, value: object, least: int) -> tuple[int, int]:
    pair = value if isinstance(value, tuple | list) else (value, value)
    is_valid = len(pair) == 2 and all(type(one) is int for one in pair)
    if not is_valid or not least <= pair[0] <= pair[1]:
        raise ValueError(
            f"{name} must be a number, at least {least}, or the least and the largest number, "
            f"got {short_repr(value)}"
        )
    return pair[0], pair[1]


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
