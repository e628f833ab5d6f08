"""Names of red agents and of editions, and what they mean to the core."""

from cagepool import _core

RED_AGENTS = {
    "B_lineAgent": _core.Red.B_LINE,
    "RedMeanderAgent": _core.Red.MEANDER,
    "SleepAgent": _core.Red.SLEEP,
    "given": _core.Red.GIVEN,
}
ALIASES = {"b_line": "B_lineAgent", "meander": "RedMeanderAgent", "sleep": "SleepAgent"}
MIX = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
EDITIONS = {"2.1": _core.Edition.V21, "leaderboard": _core.Edition.LEADERBOARD}


def canonical(red: str) -> str:
    """The class name behind an alias.

    Raises:
        ValueError: no red agent has that name.
    """
    name = ALIASES.get(red, red)
    if name not in RED_AGENTS:
        known = ", ".join([*RED_AGENTS, *ALIASES, "mix"])
        raise ValueError(f"red must be one of {known}, or several joined by +; got {red!r}")
    return name


def members(red: str) -> tuple[str, ...]:
    """Class names of the agents among which `red` is drawn for each episode.

    `mix` stands for the three agents of the challenge, `a+b` for those two.
    """
    if red == "mix":
        return MIX
    return tuple(canonical(part) for part in red.split("+"))


def bits(red: str) -> int:
    """The core's set of agents for `red`."""
    return sum({1 << int(RED_AGENTS[name]) for name in members(red)})


def edition(name: str) -> _core.Edition:
    """The core's edition.

    Raises:
        ValueError: there is no such edition.
    """
    if name not in EDITIONS:
        raise ValueError(f"edition must be one of {', '.join(EDITIONS)}; got {name!r}")
    return EDITIONS[name]
