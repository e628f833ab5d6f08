"""A recording against its replay by the native game."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cagepool.sim import actions, hosts, layout, replay
from cagepool.sim.replay import Trace

_RESTORES = [actions.index(f"Restore {host}") for host in ("User3", "User4")]


class Mismatch(NamedTuple):
    """A value in which the two games differ."""

    episode: int
    step: int
    field: str
    cyborg: str
    native: str

    def __str__(self) -> str:
        where = f"episode {self.episode}, step {self.step}, {self.field}"
        return f"{where}: CybORG {self.cyborg}, native {self.native}"


def mismatches(
    trace: Mapping[str, NDArray[Any]], true_states: NDArray[np.void] | None = None
) -> list[Mismatch]:
    """Every value of a recording that its replay does not show, in order of episode and step.

    Args:
        trace: Inputs and outputs as docs/traces.md has them.
        true_states: What `true_state()` gave after each step, (episode, step).
    """
    found: list[Mismatch] = []
    for episode in range(len(trace["blue_action"])):
        part = slice(episode, episode + 1)
        one = {name: field if name == "meta" else field[part] for name, field in trace.items()}
        truths = None if true_states is None else true_states[part]
        found += (fault._replace(episode=episode) for fault in _of_episode(one, truths))
    return found


def true_states_of(native: Trace) -> NDArray[np.void]:
    """True states, (episode, step), that the fields of a replay imply."""
    truths = np.zeros(native["blue_action"].shape, layout.TRUE_STATE)
    for name, field in (
        ("privileged", "s_priv"),
        ("user_seen", "s_user_seen"),
        ("user_unseen", "s_user_unseen"),
        ("decoys", "s_decoys"),
        ("malware", "s_malware"),
    ):
        truths[name] = native[field]
    users = (truths["user_seen"] > 0) | (truths["user_unseen"] > 0)
    truths["access"] = np.where(truths["privileged"] > 0, 2, users)
    bits = native["obs"].reshape(*native["obs"].shape[:2], len(hosts.HOSTS), 4)
    truths["compromised"] = bits[..., 2] + 2 * bits[..., 3]
    for place, name in enumerate(("ot_running", "ot_pid_known", "ot_service_known")):
        truths[name] = native["s_ot"][..., place]
    truths["red"] = native["ep_red"][:, np.newaxis]
    truths["edition"] = leaderboard = native["ep_edition"][:, np.newaxis]
    for bit, action in enumerate(_RESTORES):
        restored = np.logical_or.accumulate(native["blue_action"] == action, axis=1)
        truths["mail_immune"] |= (restored * leaderboard << bit).astype(np.uint8)
    return truths


def _of_episode(trace: Trace, truths: NDArray[np.void] | None) -> list[Mismatch]:
    try:
        native = replay(trace)
    except ValueError as refusal:  # a pick that the native game does not have
        step = re.search(r"step (\d+)", str(refusal))
        if step is None:
            raise
        pick, _, _ = str(refusal).partition(" ")
        said = str(refusal).partition(" must be ")[2]
        return [Mismatch(0, int(step[1]), pick, said.rpartition(" ")[2], f"must be {said}")]
    fields = [name for name in layout.TRACE_ROW.names or () if name in trace]
    found = [fault for name in fields for fault in _faults(name, trace[name], native[name])]
    if truths is not None:
        own = true_states_of(native)
        for name in layout.TRUE_STATE.names or ():
            found += _faults(f"true_state {name}", truths[name], own[name])
    return sorted(found, key=lambda fault: fault.step)


def _faults(field: str, cyborg: NDArray[Any], native: NDArray[Any]) -> Iterator[Mismatch]:
    """Differences of one episode's (1, step, ...) values."""
    for place in map(tuple, np.argwhere(cyborg != native)):
        _, step, *index = place
        name = "".join([field, *(f"[{number}]" for number in index)])
        yield Mismatch(0, int(step), name, str(cyborg[place]), str(native[place]))
