"""Tables of scenarios in the form of the core."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias, TypedDict, cast

import numpy as np

from cagepool import _core
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.scenarios.vocabulary import (
    DECOYS,
    HOST_TYPES,
    PORT_BIT,
    PRIVILEGED_ACCOUNTS,
    RANKED_EXPLOITS,
    RED_AGENTS,
)
from cagepool.sim import dtypes
from cagepool.sim.compliance import host_roles
from cagepool.types import Bytes, Records

NO_HOST = 255
_EXPLOIT_BIT = {name: 1 << rank for rank, name in enumerate(RANKED_EXPLOITS)}
_GREEN_ORDER = (5, 6, 7, 0, 1, 2, 3, 4)  # the core draws servers first (docs/rules.md, 4.2)


CoreBatchClass: TypeAlias = type[_core.CompiledBatch]
"""A class of the core with the methods of `_core.CompiledBatch`; all scenarios have the same."""


def core_batch(
    scenarios: Sequence[Scenario], layout: Layout, *, impacts_any_host: bool = False
) -> CoreBatchClass:
    """Class of the core that plays these scenarios: the compiled game of CAGE-2, or any tables.

    In the compiled game, red can impact only the host that runs OTService.
    """
    is_cage2 = {*scenarios} == {CAGE2} and layout == Layout.of((CAGE2,))
    if is_cage2 and not impacts_any_host:
        return _core.CompiledBatch
    return cast("CoreBatchClass", _core.TableBatch)


class CoreScenarios(TypedDict):
    """Scenarios and layout as arguments of the core."""

    scenarios: Bytes
    kinds: list[int]
    slots: int


def core_scenarios(
    scenarios: Sequence[Scenario], layout: Layout, definition: str = "host"
) -> CoreScenarios:
    """Scenarios and layout as arguments of the core.

    The definition is that of compliance.
    """
    return {
        "scenarios": dtypes.as_bytes(pack_scenarios(scenarios, layout, definition)),
        "kinds": [kind_number(kind) for kind in layout.kinds],
        "slots": len(layout.slots),
    }


def kind_number(kind: str) -> int:
    """Number of a kind of blue's actions in the core, such as `Restore` or `DecoyTomcat`."""
    if kind.startswith("Decoy"):
        return _core.kind_bit(_core.BlueKind.DECOY, DECOYS.index(kind.removeprefix("Decoy")))
    return _core.kind_bit(_core.BlueKind[kind.upper()])


def pack_scenarios(
    scenarios: Sequence[Scenario], layout: Layout, definition: str = "host"
) -> Records:
    """Tables of scenarios, one `dtypes.SCENARIO` each."""
    rows = np.zeros(len(scenarios), dtypes.SCENARIO)
    for row, scenario in zip(dtypes.as_bytes(rows), scenarios, strict=True):
        row[:] = _pack_scenario(scenario, layout, definition)
    return rows


@lru_cache(maxsize=64)
def _pack_scenario(scenario: Scenario, layout: Layout, definition: str) -> Bytes:
    """Table of one scenario as bytes; most batches play the same few."""
    rows = np.zeros(1, dtypes.SCENARIO)
    row = rows[0]
    _pack_hosts(row, scenario)
    _pack_subnets(row, scenario)
    _pack_reds(row, scenario)
    _pack_slots(row, scenario.slots(layout))
    roles = host_roles(scenario, definition)
    row["type_hosts"] = [_bits_where(role == kind for role in roles) for kind in HOST_TYPES]
    row["hash"] = np.frombuffer(bytes.fromhex(scenario.hash)[:16], np.uint8)
    return dtypes.as_bytes(rows).reshape(-1)


def _bits(indices: Iterable[int]) -> int:
    return sum({1 << index for index in indices})


def _bits_where(flags: Iterable[object]) -> int:
    return _bits(index for index, flag in enumerate(flags) if flag)


def _pack_hosts(row: np.void, scenario: Scenario) -> None:
    count = len(scenario.hosts)
    row["host_count"] = count
    row["hosts"] = (1 << count) - 1
    row["entry"] = scenario.entry
    for name in ("agents", "monitored", "windows", "mail", "ot", "reveals_ot"):
        row[name] = _bits_where(getattr(scenario, name))
    row["initial_ip"] = _bits(scenario.known_ip)
    row["gate"] = _bits(scenario.gate)
    row["confidentiality_tenths"][:count] = scenario.confidentiality_tenths
    row["availability_tenths"][:count] = scenario.availability_tenths
    row["revealed_hosts"][:count] = [_bits(hosts) for hosts in scenario.reveals_ip]
    row["services"].reshape(-1, 8)[:count] = [_services(scenario, host) for host in range(count)]
    row["blue_kinds"] = _bits(map(kind_number, scenario.action_kinds))
    before_blue = scenario.order_of_play[: scenario.order_of_play.index("Blue")]
    row["blue_after_red"] = "Red" in before_blue
    row["blue_after_green"] = "Green" in before_blue
    green_hosts = [scenario.green_hosts[index] for index in _GREEN_ORDER]
    row["green_hosts"] = [-1 if host is None else host for host in green_hosts]


def _services(scenario: Scenario, host: int) -> tuple[int, ...]:
    """Members of HostServices of the core."""
    ports = scenario.ports[host]
    user, privileged, resists = _split_accounts(scenario.vulnerabilities[host])
    listening = sum({PORT_BIT.get(port, 0) for port in ports})
    others = {port for port in ports if port not in PORT_BIT}
    return (
        *(listening, user, privileged, resists),
        *(min(len(others), 3), min(len(ports), 3), scenario.subnet_of[host], 0),
    )


def _split_accounts(accounts: dict[str, str | None]) -> tuple[int, int, int]:
    """Exploits that yield a user account, a privileged one and none, as bits."""
    user = privileged = resists = 0
    for exploit, account in accounts.items():
        if account is None:
            resists |= _EXPLOIT_BIT[exploit]
        elif account in PRIVILEGED_ACCOUNTS:
            privileged |= _EXPLOIT_BIT[exploit]
        else:
            user |= _EXPLOIT_BIT[exploit]
    return user, privileged, resists


def _pack_subnets(row: np.void, scenario: Scenario) -> None:
    count = len(scenario.subnets)
    row["subnet_count"] = count
    row["subnet_hosts"][:count] = [_bits(members) for members in scenario.members]
    row["revealed_nets"][: len(scenario.hosts)] = [_bits(nets) for nets in scenario.reveals_nets]
    row["initial_nets"] = _bits(scenario.known_nets)
    for mode in ("open", "gated"):
        nets = [net for net in range(count) if scenario.modes[net] == mode]
        row[f"{mode}_nets"] = _bits(nets)
        row[f"{mode}_hosts"] = _bits(host for net in nets for host in scenario.members[net])


def _pack_reds(row: np.void, scenario: Scenario) -> None:
    hosts = scenario.hosts
    playable = [name for name in RED_AGENTS if scenario.red_refusal(name) is None]
    row["playable_reds"] = _bits(int(RED_AGENTS[name]) for name in playable)
    row["meander_op"] = _bits(scenario.meander_op)
    row["meander_ent"] = _bits(scenario.meander_ent)
    row["impact_host"] = _bits_where(host == "Op_Server0" for host in hosts)
    if "B_lineAgent" not in playable:
        return
    user0 = hosts.index("User0")
    first_net = scenario.subnet_of[user0]
    users = [host for host in scenario.members[first_net] if host != user0]
    row["b_line_users"] = _bits(users)
    targets = row["b_line_targets"].view(np.int8).reshape(_core.MAX_HOSTS, -1)
    targets[:, 0] = first_net
    for user in users:
        targets[user, 1:15] = _b_line_targets(scenario, user)


def _b_line_targets(scenario: Scenario, user: int) -> list[int]:
    """Targets of positions 1 to 14 of B_lineAgent (docs/scenarios.md, 6.2); 0: out of reach."""
    hosts = scenario.hosts
    linked = (user, *(host for host in scenario.reveals_ip[user] if host != user))
    server = next((host for host in linked if "Enterprise" in hosts[host]), None)
    if server is None:
        return [user] * 3 + [0] * 11
    net = scenario.subnet_of[server]
    members = scenario.members[net]
    third = members[2] if len(members) > 2 else 0
    last = hosts.index("Op_Server0") if "Op_Server0" in hosts else 0
    return [user] * 3 + [server] * 3 + [net] + [third] * 3 + [last] * 4


def _pack_slots(row: np.void, slots: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> None:
    hosts = np.arange(len(slots))
    row["slot_of_host"][: len(slots)] = slots
    row["host_of_slot"] = NO_HOST
    row["host_of_slot"][slots] = hosts
    row["same_slots"] = np.array_equal(slots, hosts)
