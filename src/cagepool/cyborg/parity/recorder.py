"""Records episodes of CybORG as traces (docs/traces.md)."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cagepool.cyborg import CybORGEnv
from cagepool.cyborg.parity.fuzz_policies import FUZZ_POLICIES
from cagepool.sim import dtypes
from cagepool.sim.names import (
    DECOYS,
    EDITIONS,
    EXPLOITS,
    HOSTS,
    RED_KINDS,
    SUBNETS,
    TRACE_REDS,
    host_index,
)
from cagepool.sim.trace import Trace
from cagepool.types import Records

Sessions: TypeAlias = dict[str, list[tuple[str, int, str, str]]]
"""Account, number, type and agent of each session, by host."""

DICTIONARY_INTERVAL = 10  # steps between two readings of CybORG's dictionary, which is slow
EXPLOIT_PORTS = (139, 3389, 80, 443, 22, 3390, 25, 21)  # in the order of EXPLOITS
NONE = -1

_SWEEP = RED_KINDS.index("DiscoverRemoteSystems")
_SUCCESS = {"TRUE": 1, "FALSE": 0, "UNKNOWN": NONE}
_SCANNED = 256
_MAX_SESSIONS = 127  # largest count in a trace


@dataclass(frozen=True)
class RecordedEpisode:
    """One episode of CybORG."""

    trace: Trace  # with a leading axis of length 1
    true_states: Records  # (1, steps)
    reused_pid: bool  # a process got the id of a dead suspect (docs/rules.md, section 14)
    sessions: dict[int, Sessions]  # of CybORG's dictionary, after every tenth step


def record_episode(env: CybORGEnv, blue: str, seed: int) -> RecordedEpisode:
    """Play an episode with one of `FUZZ_POLICIES`; the seed determines both sides."""
    env.reset(seed=seed)
    reader = TraceRowReader(env)
    policy = FUZZ_POLICIES[blue](Random(f"blue {seed}"))
    rows = np.zeros(env.max_steps, dtypes.TRACE_ROW)
    true_states = np.zeros(env.max_steps, dtypes.TRUE_STATE)
    blue_actions = np.zeros(env.max_steps, np.uint8)
    sessions = {}
    for step in range(env.max_steps):
        action = blue_actions[step] = policy(reader.last_target)
        reader.before_step()
        observation, reward, *_ = env.step(action)
        true_states[step] = env.true_state()
        reader.after_step(true_states[step], rows[step])
        rows[step]["obs"] = observation
        rows[step]["reward_tenths"] = round(10 * reward)
        if step % DICTIONARY_INTERVAL == DICTIONARY_INTERVAL - 1:
            sessions[step] = dictionary_sessions(env.true_state_dict())
    trace = _header(env, blue) | {"blue_action": blue_actions[np.newaxis]}
    trace |= {name: rows[name][np.newaxis].copy() for name in dtypes.TRACE_ROW.names or ()}
    return RecordedEpisode(trace, true_states[np.newaxis], reader.reused_pid, sessions)


def dictionary_sessions(dictionary: dict[str, Any]) -> Sessions:
    """Sessions in a dictionary of the true state."""
    return {
        host: [
            (entry["Username"], entry["ID"], entry["Type"].name, entry["Agent"])
            for entry in dictionary[host]["Sessions"]
        ]
        for host in HOSTS
    }


def concatenate_traces(traces: Sequence[Trace]) -> Trace:
    """Join traces of equally long episodes of one edition."""
    first = traces[0]
    return {
        name: first[name] if name == "meta" else np.concatenate([trace[name] for trace in traces])
        for name in first
    }


class TraceRowReader:
    """Reads each step of one CybORG as a trace row: moves, random draws and red's knowledge."""

    last_target: int  # host of red's last action, or -1
    reused_pid: bool  # a process of this episode got the id of a dead suspect

    def __init__(self, env: CybORGEnv) -> None:
        """Read from an environment whose episode has just started."""
        self._controller = env.cyborg.environment_controller
        self.last_target = NONE
        self.reused_pid = False

    def before_step(self) -> None:
        """Save the state that the step may change."""
        state = self._controller.state
        self._accounts = {
            number: session.username for number, session in state.sessions["Red"].items()
        }
        suspects = state.sessions["Blue"][0].sus_pids
        self._suspects = {host: set(pids) for host, pids in suspects.items()}
        self._pids = {host: set(self._host_pids(host)) for host in suspects}

    def after_step(self, true_state: Any, row: Any) -> None:
        """Write the trace row of the step, except for observation and reward."""
        state = self._controller.state
        self._write_moves(row)
        self._write_draws(state, row)
        self._write_true_state(true_state, row)
        self._write_knowledge(state, row)
        self._write_agent_state(state, row)
        self.reused_pid |= any(
            pid in pids and pid not in self._pids[host]
            for host, pids in self._suspects.items()
            for pid in self._host_pids(host)
        )

    def _host_pids(self, host: str) -> Iterator[int]:
        return (process.pid for process in self._controller.state.hosts[host].processes)

    def _write_moves(self, row: Any) -> None:
        action = self._controller.action["Red"]
        row["red_kind"] = kind = RED_KINDS.index(type(action).__name__)
        row["red_target"] = target = self._target(action)
        self.last_target = NONE if kind == _SWEEP else target
        row["green_host"] = self._target(self._controller.action["Green"])
        for agent in ("blue", "red"):
            success = self._controller.observation[agent.capitalize()].success
            row[f"{agent}_success"] = _SUCCESS[success.name]

    def _target(self, action: Any) -> int:
        """Index of an action's subnet or host; -1 if the action has neither."""
        state = self._controller.state
        attributes = vars(action)
        if "subnet" in attributes:
            names = {subnet: name for name, subnet in state.subnet_name_to_cidr.items()}
            return SUBNETS.index(names[action.subnet])
        if "ip_address" in attributes:
            return host_index(state.ip_addresses[action.ip_address])
        return host_index(action.hostname) if "hostname" in attributes else NONE

    def _write_draws(self, state: Any, row: Any) -> None:
        # B_line plays one action object repeatedly. The exploit that the object chose is removed
        # from it, so that a later step cannot show an old choice.
        exploit = vars(self._controller.action["Red"]).pop("sub_action", None)
        name = type(exploit).__name__
        row["exploit"] = NONE if exploit is None else EXPLOITS.index(name)
        row["detected"], row["esc_pick"] = NONE, NONE
        suspects = state.sessions["Blue"][0].sus_pids
        for number, session in state.sessions["Red"].items():
            if number not in self._accounts:
                if session.session_type.name != "SSH":
                    row["detected"] = session.pid in suspects.get(session.host, ())
            elif session.username != self._accounts[number]:
                row["esc_pick"] = _red_sessions(state, session.host).index(session)

    @staticmethod
    def _write_true_state(true_state: Any, row: Any) -> None:
        row["s_priv"] = np.minimum(true_state["privileged"], _MAX_SESSIONS)
        row["s_user_seen"] = np.minimum(true_state["user_seen"], _MAX_SESSIONS)
        row["s_user_unseen"] = np.minimum(true_state["user_unseen"], _MAX_SESSIONS)
        row["s_decoys"] = true_state["decoys"]
        row["s_malware"] = true_state["malware"]
        ot_fields = ("ot_running", "ot_pid_known", "ot_service_known")
        row["s_ot"] = [true_state[name] for name in ot_fields]

    def _write_knowledge(self, state: Any, row: Any) -> None:
        known = self._controller.agent_interfaces["Red"].action_space
        ports = state.sessions["Red"][0].ports
        for address, name in state.ip_addresses.items():
            host = host_index(name)
            row["s_known_ip"][host] = known.ip_address[address]
            row["s_known_host"][host] = known.hostname[name]
            row["s_red_ports"][host] = _port_bits(ports[address]) if address in ports else 0
        row["s_known_net"] = [known.subnet[state.subnet_name_to_cidr[name]] for name in SUBNETS]

    def _write_agent_state(self, state: Any, row: Any) -> None:
        agent = self._controller.agent_interfaces["Red"].agent
        kind = type(agent).__name__
        row["s_bline_pos"] = agent.action if kind == "B_lineAgent" else NONE
        if kind == "RedMeanderAgent":
            row["s_meander"] = [
                _host_bits(state.ip_addresses[address] for address in agent.scanned_ips),
                _host_bits(state.ip_addresses[address] for address in agent.exploited_ips),
                _host_bits(agent.escalated_hosts),
                _host_bits(agent.host_ip_map),
            ]


def _header(env: CybORGEnv, blue: str) -> dict[str, NDArray[Any]]:
    names = {
        "edition": env.edition,
        "edition_names": list(EDITIONS),
        "red_names": TRACE_REDS,
        "policy_names": list(FUZZ_POLICIES),
        "hosts": HOSTS,
        "subnets": SUBNETS,
        "red_kinds": RED_KINDS,
        "exploits": EXPLOITS,
        "decoys": DECOYS,
    }
    numbers = {
        "ep_red": TRACE_REDS.index(env.red),
        "ep_policy": list(FUZZ_POLICIES).index(blue),
        "ep_green": int(env.green),
        "ep_edition": list(EDITIONS).index(env.edition),
    }
    header = {name: np.array([number], np.int8) for name, number in numbers.items()}
    return {"meta": np.array(json.dumps(names)), **header}


def _red_sessions(state: Any, host: str) -> list[Any]:
    return [session for session in state.sessions["Red"].values() if session.host == host]


def _port_bits(ports: Iterable[int]) -> int:
    scanned = set(ports)
    return _SCANNED + sum(1 << bit for bit, port in enumerate(EXPLOIT_PORTS) if port in scanned)


def _host_bits(names: Iterable[str]) -> int:
    return sum({1 << host_index(name) for name in names})
