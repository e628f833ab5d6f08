"""Decoys of one host, what red knows of its ports, and what an exploit of the host yields.

A host's condition is the set of ports that decoys open, the ports that red has seen, and, in
edition `leaderboard`, whether the host was restored. `HostModel` enumerates the conditions and
merges those that no sequence of actions can tell apart (bisimulation): the dynamic program stays
small.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cagepool import _core
from cagepool.sim.names import EDITIONS, host_index
from cagepool.types import Float64s, Int64s

NEVER_SCANNED = -1
MAIL_HOSTS = (host_index("User3"), host_index("User4"))


class Condition(NamedTuple):
    """Condition of a host."""

    decoy_ports: int
    """Ports that decoys open, as bits of `_core.host_services`."""
    red_ports: int
    """Ports that red has seen, or NEVER_SCANNED."""
    mail_immune: bool
    """HarakaRCE fails (rule L2)."""


class ExploitOutcome(NamedTuple):
    """Probabilities of what an exploit yields; the rest to 1 is failure."""

    privileged_detected: float = 0.0
    privileged_undetected: float = 0.0
    user_detected: float = 0.0
    user_undetected: float = 0.0
    user_ssh: float = 0.0


def exploit_outcome(host: int, condition: Condition) -> ExploitOutcome:
    """Outcome of ExploitRemoteService on a host that red can reach (docs/rules.md, 5.4)."""
    _, user_level, privileged = _core.host_services()[host]
    outcome = dict.fromkeys(ExploitOutcome._fields, 0.0)
    for port, probability in _exploit_shares(condition.red_ports):
        detected = probability * _core.DETECTED_SHARE
        if port == _core.SSH_PORT and port & user_level:
            outcome["user_ssh"] += probability
        elif port == _core.MAIL_PORT and condition.mail_immune:
            continue
        elif port & (user_level | privileged):
            level = "privileged" if port & privileged else "user"
            outcome[f"{level}_detected"] += detected
            outcome[f"{level}_undetected"] += probability - detected
    return ExploitOutcome(**outcome)


def _exploit_shares(red_ports: int) -> list[tuple[int, float]]:
    """Probability of each exploit among those whose port red has seen."""
    if red_ports == NEVER_SCANNED:
        return []
    ports = [1 << bit for bit in range(8) if red_ports >> bit & 1]
    if len(ports) == 1:
        return [(ports[0], 1.0)]
    *others, top = ports
    rest = (1 - _core.TOP_EXPLOIT_SHARE) / len(others)
    return [(top, _core.TOP_EXPLOIT_SHARE), *((port, rest) for port in others)]


def decoy_actions(host: int) -> list[tuple[int, int, int]]:
    """Blue's decoys that the host can ever take: action, port opened, port that must be free."""
    found = []
    for action in range(_core.ACTION_COUNT):
        kind, target, decoy, possible = _core.blue_action(action)
        if kind == _core.BlueKind.DECOY and target == host and possible:
            found.append((action, *_core.ports_of_decoys()[decoy]))
    return found


@dataclass(frozen=True)
class HostEvents:
    """How the condition of a host changes."""

    host: int
    edition: str

    def scan(self, condition: Condition) -> Condition:
        """Red scans the host (rules 5.2, L1)."""
        listening = _core.host_services()[self.host][0] | condition.decoy_ports
        keeps = EDITIONS[self.edition] == _core.Edition.LEADERBOARD
        remembered = max(condition.red_ports, 0) if keeps else 0
        return condition._replace(red_ports=remembered | listening)

    def restore(self, condition: Condition) -> Condition:
        """Blue restores the host (rules 4.1, L2)."""
        is_leaderboard = EDITIONS[self.edition] == _core.Edition.LEADERBOARD
        immune = condition.mail_immune or (is_leaderboard and self.host in MAIL_HOSTS)
        return condition._replace(decoy_ports=0, mail_immune=immune)

    def decoys(self, condition: Condition) -> dict[int, Condition]:
        """Blue places a decoy: condition by action, for the actions that succeed (rules 1.5)."""
        return {
            action: condition._replace(decoy_ports=condition.decoy_ports | opened)
            for action, opened, needed in decoy_actions(self.host)
            if not condition.decoy_ports & needed
        }


START = Condition(0, NEVER_SCANNED, mail_immune=False)


class HostModel:
    """Conditions of a host up to bisimulation, numbered from 0; START is number `start`."""

    def __init__(self, host: int, edition: str) -> None:
        """Enumerate the conditions that can be reached from START, and merge them."""
        self.host = host
        self.events = HostEvents(host, edition)
        conditions = _reachable(START, self._successors)
        self.number_of = _bisimulation(conditions, self._behavior)
        self.size = len(set(self.number_of.values()))
        self.start = self.number_of[START]
        self.scanned = self._table(lambda c: self.number_of[self.events.scan(c)])
        self.restored = self._table(lambda c: self.number_of[self.events.restore(c)])
        members = {number: condition for condition, number in self.number_of.items()}
        self.members = [members[number] for number in range(self.size)]
        self.outcomes: Float64s = np.array([exploit_outcome(host, c) for c in self.members])
        decoyed = [self._decoyed(condition) for condition in self.members]
        width = max(map(len, decoyed))
        self.decoyed: Int64s = np.array(  # (condition, choice); padded with the condition itself
            [[*row, *[number] * (width - len(row))] for number, row in enumerate(decoyed)]
        ).reshape(self.size, width)

    def decoy_action(self, condition: Condition, number: int) -> int | None:
        """A decoy that leads from a condition to a numbered one; None: no decoy does."""
        for action, successor in self.events.decoys(condition).items():
            if self.number_of[successor] == number:
                return action
        return None

    def _decoyed(self, condition: Condition) -> list[int]:
        numbers = {self.number_of[successor] for successor in self._decoy_successors(condition)}
        return sorted(numbers - {self.number_of[condition]})

    def _decoy_successors(self, condition: Condition) -> list[Condition]:
        return list(self.events.decoys(condition).values())

    def _successors(self, condition: Condition) -> list[Condition]:
        moved = [self.events.scan(condition), self.events.restore(condition)]
        return moved + self._decoy_successors(condition)

    def _behavior(self, condition: Condition, number_of: dict[Condition, int]) -> Hashable:
        """What tells conditions apart, given a coarser numbering."""
        decoyed = {number_of[successor] for successor in self._decoy_successors(condition)}
        return (
            tuple(np.round(exploit_outcome(self.host, condition), 12)),
            number_of[self.events.scan(condition)],
            number_of[self.events.restore(condition)],
            frozenset(decoyed | {number_of[condition]}),  # blue may also leave the host as it is
        )

    def _table(self, successor: Callable[[Condition], int]) -> Int64s:
        table = np.zeros(self.size, np.int64)
        for condition, number in self.number_of.items():
            table[number] = successor(condition)
        return table


def _reachable(
    start: Condition, successors: Callable[[Condition], Sequence[Condition]]
) -> list[Condition]:
    found = {start: None}
    frontier = [start]
    while frontier:
        new = [s for condition in frontier for s in successors(condition) if s not in found]
        frontier = list(dict.fromkeys(new))
        found |= dict.fromkeys(frontier)
    return list(found)


def _bisimulation(
    conditions: Sequence[Condition],
    behavior: Callable[[Condition, dict[Condition, int]], Hashable],
) -> dict[Condition, int]:
    """Coarsest numbering in which conditions of equal number have equal behavior."""
    number_of = dict.fromkeys(conditions, 0)
    count = 1
    while True:
        behaviors = {c: (number_of[c], behavior(c, number_of)) for c in conditions}
        numbers = {found: index for index, found in enumerate(dict.fromkeys(behaviors.values()))}
        number_of = {condition: numbers[behaviors[condition]] for condition in conditions}
        if len(numbers) == count:
            return number_of
        count = len(numbers)
