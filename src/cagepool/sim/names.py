"""Names and indices of hosts, actions, red agents and editions (docs/rules.md, 1, 2 and 5).

The indices are those of the core: of host arrays, of actions, and of its enums.
"""

from collections.abc import Sequence
from itertools import accumulate

from cagepool import _core
from cagepool.scenarios import vocabulary

DECOYS = vocabulary.DECOYS
EXPLOITS = vocabulary.EXPLOITS
HOST_TYPES = vocabulary.HOST_TYPES
MIX = vocabulary.MIX
RED_AGENTS = vocabulary.RED_AGENTS
RED_ALIASES = vocabulary.RED_ALIASES
RED_KINDS = vocabulary.RED_KINDS
red_class_name = vocabulary.red_class_name

HOSTS = (
    "Defender",
    "Enterprise0",
    "Enterprise1",
    "Enterprise2",
    "Op_Host0",
    "Op_Host1",
    "Op_Host2",
    "Op_Server0",
    "User0",
    "User1",
    "User2",
    "User3",
    "User4",
)
SUBNETS = ("Enterprise", "Operational", "User")
SUBNET_HOSTS = {
    "Enterprise": ("Enterprise0", "Enterprise1", "Enterprise2", "Defender"),
    "Operational": ("Op_Server0", "Op_Host0", "Op_Host1", "Op_Host2"),
    "User": ("User0", "User1", "User2", "User3", "User4"),
}
HOST_SUBNET = {host: subnet for subnet, hosts in SUBNET_HOSTS.items() for host in hosts}
# In the specified definition of compliance User0 has no type (docs/workflow.md, section 1).
HOST_TYPE = {host: host.rstrip("0123456789").lower() for host in HOSTS}
assert len(HOSTS) == _core.HOST_COUNT
assert len(SUBNETS) == _core.SUBNET_COUNT

EDITIONS = {"2.1": _core.Edition.V21, "leaderboard": _core.Edition.LEADERBOARD}

OFFICIAL_REDS = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
"""Red agents of the official score table, in its order."""
TRAINABLE_REDS = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
"""Red agents that choose their own actions, in CybORG too; `given` needs a second player."""
TRACE_REDS = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
"""Red agents by their number in the `ep_red` of traces that we write."""


def host_index(name: str) -> int:
    """Index of a host.

    Raises:
        ValueError: no host has that name.
    """
    if name not in HOSTS:
        raise ValueError(f"a host must be one of {', '.join(HOSTS)}; got {name!r}")
    return HOSTS.index(name)


def host_name(index: int) -> str:
    """Name of a host.

    Raises:
        IndexError: there is no such host.
    """
    return _name_at(index, HOSTS, "a host")


def red_move_name(kind: int, target: int) -> str:
    """Name of a red action given by kind and target: a subnet for a sweep, else a host."""
    if kind == _core.RedKind.SLEEP:
        return RED_KINDS[kind]
    return f"{RED_KINDS[kind]} {(SUBNETS if kind == _core.RedKind.SWEEP else HOSTS)[target]}"


def _blue_action_name(index: int) -> str:
    kind, host, decoy, _ = _core.blue_action(index)
    if kind in (_core.BlueKind.SLEEP, _core.BlueKind.MONITOR):
        return kind.name.capitalize()
    verb = f"Decoy{DECOYS[decoy]}" if kind == _core.BlueKind.DECOY else kind.name.capitalize()
    return f"{verb} {HOSTS[host]}"


ACTIONS = tuple(_blue_action_name(index) for index in range(_core.ACTION_COUNT))
RED_ACTIONS = tuple(
    red_move_name(*_core.red_action(index)) for index in range(_core.RED_ACTION_COUNT)
)


def action_index(name: str) -> int:
    """Index of a blue action, such as `Restore User4`.

    Raises:
        ValueError: blue has no such action.
    """
    return vocabulary.index_of(name, ACTIONS, "an action")


def action_name(index: int) -> str:
    """Name of a blue action.

    Raises:
        IndexError: there is no such action.
    """
    return _name_at(index, ACTIONS, "an action")


def red_action_index(name: str) -> int:
    """Index of a red action, such as `ExploitRemoteService User1`.

    Raises:
        ValueError: red has no such action.
    """
    return vocabulary.index_of(name, RED_ACTIONS, "a red action")


def red_action_name(index: int) -> str:
    """Name of a red action.

    Raises:
        IndexError: there is no such action.
    """
    return _name_at(index, RED_ACTIONS, "a red action")


def red_class_names(red: str) -> tuple[str, ...]:
    """Class names of the agents from which a red setting draws: one agent, `a+b` or `mix`."""
    if red == MIX:
        return OFFICIAL_REDS
    return tuple(red_class_name(part.partition(":")[0]) for part in red.split("+"))


def has_red_weights(red: str) -> bool:
    """Whether a red setting gives weights, as in `b_line:0.48+meander:0.52`."""
    return ":" in red


def red_weights(red: str) -> dict[str, float]:
    """Probability of each agent of a red setting, by class name; equal without weights.

    Raises:
        ValueError: an agent is unknown, or the setting has weights that are not positive numbers,
            agents without one, or an agent twice.
    """
    names = red_class_names(red)
    if not has_red_weights(red):
        agents = dict.fromkeys(names)
        return dict.fromkeys(agents, 1 / len(agents))
    weights = [_red_weight(red, part) for part in red.split("+")]
    if len({*names}) != len(names):
        raise ValueError(f"red must name an agent once if it has weights, got {red!r}")
    return {name: weight / sum(weights) for name, weight in zip(names, weights, strict=True)}


def red_shares(red: str) -> tuple[int, ...]:
    """Weights of a red setting as `GameConfig.red_shares` of the core; zeros: equal shares.

    Raises:
        ValueError: see `red_weights`; or an agent has less than 1 of 65,536 episodes.
    """
    agents = list(RED_AGENTS)[:-1]  # the last one has the rest
    if not has_red_weights(red):
        return (0,) * len(agents)
    weights = red_weights(red)
    if min(weights.values()) < 2**-16:
        raise ValueError(f"a weight of red must be at least 1/65536 of their sum, got {red!r}")
    sums = accumulate(weights.get(name, 0.0) for name in agents)
    return tuple(min(round(2**16 * cumulative), 2**16 - 1) for cumulative in sums)


def _red_weight(red: str, part: str) -> float:
    name, _, weight = part.partition(":")
    try:
        value = float(weight)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(
            f"a weight of red must be a number above 0, such as {name}:0.5, got {part!r} in {red!r}"
        )
    return value


def red_bitmask(red: str) -> int:
    """Set of agents from which a red setting draws, as bits of `_core.Red`."""
    return sum({1 << int(RED_AGENTS[name]) for name in red_class_names(red)})


def edition_code(name: str) -> _core.Edition:
    """Edition in the core.

    Raises:
        ValueError: there is no such edition.
    """
    if name not in EDITIONS:
        raise ValueError(f"edition must be one of {', '.join(EDITIONS)}; got {name!r}")
    return EDITIONS[name]


def _name_at(index: int, names: Sequence[str], noun: str) -> str:
    if not 0 <= index < len(names):
        raise IndexError(f"the index of {noun} must be below {len(names)}, got {index}")
    return names[index]
