"""Defenders that lead CybORG into rare corners; some look at what red does."""

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from cagepool.sim.names import ACTIONS, DECOYS, HOSTS, action_index

Blue: TypeAlias = Callable[[int], int]
"""The next action, given the host that red went for last, or -1."""

SLEEP = action_index("Sleep")

_DECOYS = [f"Decoy{name}" for name in DECOYS]
_VERBS = ("Analyse", "Remove", "Restore", *_DECOYS)
_SHY = 15  # steps that B_line needs to get at Op_Server0, if nobody interferes


def _on(verb: str, host: int) -> int:
    return action_index(f"{verb} {HOSTS[host]}")


def sleep(_draw: Random) -> Blue:
    """Does nothing."""
    return lambda _target: SLEEP


def random(draw: Random) -> Blue:
    """Draws any action."""
    return lambda _target: draw.randrange(len(ACTIONS))


def chase(draw: Random) -> Blue:
    """Acts where red has just been, half of the time."""

    def act(target: int) -> int:
        if target < 0 or draw.random() < 0.5:
            return draw.randrange(len(ACTIONS))
        return _on(draw.choice(_VERBS), target)

    return act


def patient(draw: Random) -> Blue:
    """Lets red have its way for a while, then acts now and then, mostly on red's last hosts."""
    quiet = draw.randrange(_SHY, 3 * _SHY)
    chasing = chase(draw)
    steps = iter(range(1_000_000))

    def act(target: int) -> int:
        return chasing(target) if next(steps) >= quiet and draw.random() < 0.3 else SLEEP

    return act


def decoys(draw: Random) -> Blue:
    """Places decoys that red may see, and wipes them again where red has just been."""

    def act(target: int) -> int:
        if target >= 0 and draw.random() < 0.2:
            return _on("Restore", target)
        host = target if target >= 0 and draw.random() < 0.5 else draw.randrange(len(HOSTS))
        return _on(draw.choice(_DECOYS), host)

    return act


BLUES: dict[str, Callable[[Random], Blue]] = {
    "sleep": sleep,
    "random": random,
    "chase": chase,
    "patient": patient,
    "decoys": decoys,
}
