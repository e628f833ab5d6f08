"""Blue policies that reach rare states of the game; some react to red's last target."""

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from cagepool.sim.names import ACTIONS, DECOYS, HOSTS, action_index

FuzzPolicy: TypeAlias = Callable[[int], int]
"""Chooses the next action, given the host of red's last action, or -1."""

SLEEP = action_index("Sleep")

_DECOY_VERBS = [f"Decoy{name}" for name in DECOYS]
_VERBS = ("Analyse", "Remove", "Restore", *_DECOY_VERBS)
_B_LINE_STEPS = 15  # that B_line needs to reach Op_Server0 without interference


def _action_on(verb: str, host: int) -> int:
    return action_index(f"{verb} {HOSTS[host]}")


def sleep(_rng: Random) -> FuzzPolicy:
    """Do nothing."""
    return lambda _target: SLEEP


def random(rng: Random) -> FuzzPolicy:
    """Draw from all actions."""
    return lambda _target: rng.randrange(len(ACTIONS))


def chase(rng: Random) -> FuzzPolicy:
    """Act on red's last target half of the time, else draw from all actions."""

    def act(target: int) -> int:
        if target < 0 or rng.random() < 0.5:
            return rng.randrange(len(ACTIONS))
        return _action_on(rng.choice(_VERBS), target)

    return act


def patient(rng: Random) -> FuzzPolicy:
    """Sleep until red has got far, then chase in 30 % of the steps."""
    quiet_steps = rng.randrange(_B_LINE_STEPS, 3 * _B_LINE_STEPS)
    chasing = chase(rng)
    steps = iter(range(1_000_000))

    def act(target: int) -> int:
        is_active = next(steps) >= quiet_steps and rng.random() < 0.3
        return chasing(target) if is_active else SLEEP

    return act


def decoys(rng: Random) -> FuzzPolicy:
    """Place decoys, half of them on red's last target, and restore that target now and then."""

    def act(target: int) -> int:
        if target >= 0 and rng.random() < 0.2:
            return _action_on("Restore", target)
        host = target if target >= 0 and rng.random() < 0.5 else rng.randrange(len(HOSTS))
        return _action_on(rng.choice(_DECOY_VERBS), host)

    return act


FUZZ_POLICIES: dict[str, Callable[[Random], FuzzPolicy]] = {
    "sleep": sleep,
    "random": random,
    "chase": chase,
    "patient": patient,
    "decoys": decoys,
}
