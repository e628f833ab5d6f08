"""Episodes of CybORG as traces (docs/traces.md): every field read off CybORG's own state."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cagepool.cyborg import CybORGEnv
from cagepool.cyborg.parity.fuzz_policies import BLUES
from cagepool.cyborg.parity.sight import Sight
from cagepool.sim import dtypes
from cagepool.sim.names import DECOYS, EDITIONS, EXPLOITS, HOSTS, RED_KINDS, SUBNETS, TRACE_REDS
from cagepool.sim.trace import Trace
from cagepool.types import Records

Sessions: TypeAlias = dict[str, list[tuple[str, int, str, str]]]
"""Account, number, type and agent of the sessions of each host."""

DICTIONARY_EVERY = 10  # steps; it is slow


@dataclass(frozen=True)
class Recording:
    """One episode."""

    trace: Trace  # with a leading axis of length 1
    true_states: Records  # (1, steps)
    reused_pid: bool  # a process got the id of a dead suspect (docs/rules.md, section 14)
    sessions: dict[int, Sessions]  # after every tenth step, as CybORG's dictionary has them


def record(env: CybORGEnv, blue: str, seed: int) -> Recording:
    """Play an episode with one of `BLUES`, all luck of both sides decided by the seed."""
    env.reset(seed=seed)
    sight = Sight(env)
    act = BLUES[blue](Random(f"blue {seed}"))
    rows = np.zeros(env.max_steps, dtypes.TRACE_ROW)
    truths = np.zeros(env.max_steps, dtypes.TRUE_STATE)
    blue_actions = np.zeros(env.max_steps, np.uint8)
    sessions = {}
    for step in range(env.max_steps):
        action = blue_actions[step] = act(sight.last_target)
        sight.before()
        observation, reward, *_ = env.step(action)
        truths[step] = truth = env.true_state()
        sight.after(truth, rows[step])
        rows[step]["obs"] = observation
        rows[step]["reward_tenths"] = round(10 * reward)
        if step % DICTIONARY_EVERY == DICTIONARY_EVERY - 1:
            sessions[step] = sessions_of(env.true_state_dict())
    trace = _header(env, blue) | {"blue_action": blue_actions[np.newaxis]}
    trace |= {name: rows[name][np.newaxis].copy() for name in dtypes.TRACE_ROW.names or ()}
    return Recording(trace, truths[np.newaxis], sight.reused_pid, sessions)


def sessions_of(dictionary: dict[str, Any]) -> Sessions:
    """The sessions in a dictionary of the true state."""
    return {
        host: [
            (entry["Username"], entry["ID"], entry["Type"].name, entry["Agent"])
            for entry in dictionary[host]["Sessions"]
        ]
        for host in HOSTS
    }


def joined(traces: Sequence[Trace]) -> Trace:
    """Traces of equally long episodes of one edition as one."""
    first = traces[0]
    return {
        name: first[name] if name == "meta" else np.concatenate([trace[name] for trace in traces])
        for name in first
    }


def _header(env: CybORGEnv, blue: str) -> dict[str, NDArray[Any]]:
    names = {
        "edition": env.edition,
        "edition_names": list(EDITIONS),
        "red_names": TRACE_REDS,
        "policy_names": list(BLUES),
        "hosts": HOSTS,
        "subnets": SUBNETS,
        "red_kinds": RED_KINDS,
        "exploits": EXPLOITS,
        "decoys": DECOYS,
    }
    numbers = {
        "ep_red": TRACE_REDS.index(env.red),
        "ep_policy": list(BLUES).index(blue),
        "ep_green": int(env.green),
        "ep_edition": list(EDITIONS).index(env.edition),
    }
    header = {name: np.array([number], np.int8) for name, number in numbers.items()}
    return {"meta": np.array(json.dumps(names)), **header}
