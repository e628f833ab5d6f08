"""The game against B_line by exhaustive search: scalar, without merging or vectors.

Checks `research.bounds`, whose outcomes of exploits and events of hosts it shares; the rest is
written from docs/rules.md. Blue places no decoys on Op_Server0.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from cagepool import _core
from cagepool.sim.names import HOSTS, host_index
from research.bounds.host_model import Condition, HostEvents, exploit_outcome

Session = Literal["none", "seen", "unseen", "privileged"]
FAILED_TO = (0, 1, 2, 2, 2, 2, 5, 5, 5, 5, 9, 9, 9, 12, 13)  # rules 6.2
OP_SERVER0 = host_index("Op_Server0")


class Node(NamedTuple):
    """One true state of the game."""

    position: int
    reached_12: bool
    sessions: tuple[Session, ...]  # of user host, entry host, Enterprise2, Op_Server0
    service: Literal["running", "stopped", "protected"]
    conditions: tuple[Condition, ...]


class BruteForce:
    """Search over information sets."""

    def __init__(self, user: str, edition: str, *, full_information: bool) -> None:
        """Play against a B_line that draws this user host."""
        entry = "Enterprise1" if user in ("User1", "User2") else "Enterprise0"
        self.hosts = [host_index(name) for name in (user, entry, "Enterprise2", "Op_Server0")]
        self.events = [HostEvents(host, edition) for host in self.hosts]
        self.full_information = full_information
        self.value = lru_cache(maxsize=None)(self._value)

    def start(self) -> Node:
        """State at the start of an episode."""
        never = Condition(0, -1, mail_immune=False)
        return Node(0, False, ("none",) * 4, "running", (never,) * 4)

    def _value(self, belief: frozenset[tuple[Node, float]], steps: int) -> float:
        """Best expected reward of some steps, times the total weight of the belief."""
        if steps == 0:
            return 0.0
        return max(self._action_value(belief, action, steps) for action in self.actions(belief))

    def actions(self, belief: frozenset[tuple[Node, float]]) -> list[tuple[str, int, int]]:
        """Blue's actions: verb, number of the host, decoy action."""
        node = next(iter(belief))[0]
        found = [("wait", 0, 0)]
        for number in range(4):
            found += [("remove", number, 0), ("restore", number, 0)]
            if self.hosts[number] != OP_SERVER0:
                decoys = self.events[number].decoys(node.conditions[number])
                found += [("decoy", number, decoy) for decoy in decoys]
        return found

    def _action_value(
        self, belief: frozenset[tuple[Node, float]], action: tuple[str, int, int], steps: int
    ) -> float:
        total = 0.0
        groups: dict[object, dict[Node, float]] = defaultdict(lambda: defaultdict(float))
        for node, weight in belief:
            moved = self.after_blue(node, action)
            for probability, successor, visible in self.after_red(moved):
                cost = 1.0 if action[0] == "restore" else 0.0
                total -= weight * probability * (cost + self.loss(successor))
                label = self._label(successor, visible)
                groups[label][successor] += weight * probability
        for group in groups.values():
            scale = sum(group.values())
            normal = frozenset((node, round(share / scale, 14)) for node, share in group.items())
            total += scale * self.value(normal, steps - 1)
        return total

    def _label(self, node: Node, visible: int | None) -> object:
        """What blue is shown; `visible` is the host of an exploit that blue saw."""
        if self.full_information or visible is None:
            return node
        hidden = list(node.sessions)
        hidden[visible] = "hidden"  # type: ignore[call-overload]
        return node._replace(sessions=tuple(hidden))

    def after_blue(self, node: Node, action: tuple[str, int, int]) -> Node:
        """Play blue's action."""
        verb, number, decoy = action
        sessions, conditions = list(node.sessions), list(node.conditions)
        service = node.service
        if verb == "remove" and sessions[number] == "seen":
            sessions[number] = "none"
        if verb == "restore":
            sessions[number] = "none"
            conditions[number] = self.events[number].restore(conditions[number])
            service = "protected" if self.hosts[number] == OP_SERVER0 else service
        if verb == "decoy":
            conditions[number] = self.events[number].decoys(conditions[number])[decoy]
        return node._replace(
            sessions=tuple(sessions), conditions=tuple(conditions), service=service
        )

    def after_red(self, node: Node) -> Iterator[tuple[float, Node, int | None]]:
        """Red's action: probability, next state, host of an exploit that blue saw."""
        position = node.position
        gate = node.sessions[1] != "none" or node.sessions[2] != "none"
        if position in (0, 7):
            yield 1.0, self._next(node, success=True), None
        elif position in (1, 4, 8, 11):
            number = (1, 4, 8, 11).index(position)
            conditions = list(node.conditions)
            empty = number == 3 and not gate
            if not empty:
                conditions[number] = self.events[number].scan(conditions[number])
            scanned = node._replace(conditions=tuple(conditions))
            yield 1.0, self._next(scanned, success=True, empty=empty), None
        elif position in (2, 5, 9, 12):
            yield from self._exploit(node, (2, 5, 9, 12).index(position), gate)
        elif position in (3, 6, 10, 13):
            number = (3, 6, 10, 13).index(position)
            success = node.sessions[number] != "none"
            escalated = _with_session(node, number, "privileged") if success else node
            yield 1.0, self._next(escalated, success=success), None
        else:
            success = node.sessions[3] != "none"
            stops = success and node.service == "running"
            stopped = node._replace(service="stopped") if stops else node
            yield 1.0, self._next(stopped, success=success), None

    def _exploit(
        self, node: Node, number: int, gate: bool
    ) -> Iterator[tuple[float, Node, int | None]]:
        outcome = exploit_outcome(self.hosts[number], node.conditions[number])
        reachable = number != 3 or gate
        yields: list[tuple[float, Session, int | None]] = [
            (outcome.privileged_detected, "privileged", number),
            (outcome.privileged_undetected, "privileged", None),
            (outcome.user_detected, "seen", number),
            (outcome.user_undetected, "unseen", None),
            (outcome.user_ssh, "unseen", number),
        ]
        failure = 1.0
        for probability, session, visible in yields if reachable else []:
            if probability:
                failure -= probability
                kept = node.sessions[number] == "privileged"
                taken = node if kept else _with_session(node, number, session)
                yield probability, self._next(taken, success=True), None if kept else visible
        if failure > 1e-12:
            yield failure, self._next(node, success=False), None

    def _next(self, node: Node, *, success: bool, empty: bool = False) -> Node:
        position = min(node.position + 1, 14) if success else FAILED_TO[node.position]
        if position == 12 and not node.reached_12 and empty:
            return node._replace(position=1)
        return node._replace(position=position, reached_12=node.reached_12 or position == 12)

    def loss(self, node: Node) -> float:
        """Loss of a step that ends in this state."""
        loss = 10.0 if node.service == "stopped" else 0.0
        for host, session in zip(self.hosts, node.sessions, strict=True):
            if session == "privileged":
                loss += 0.1 if HOSTS[host].startswith("User") else 1.0
        return loss


def _with_session(node: Node, number: int, session: Session) -> Node:
    sessions = list(node.sessions)
    sessions[number] = session
    return node._replace(sessions=tuple(sessions))


assert len(_core.b_line_plan()) == len(FAILED_TO)
