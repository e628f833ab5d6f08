"""Records episodes of CybORG as traces (docs/traces.md)."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cagepool.cyborg import CybORGEnv
from cagepool.cyborg.env import GIVEN
from cagepool.parity.fuzz_policies import FUZZ_POLICIES, random_red
from cagepool.scenarios import CAGE2
from cagepool.scenarios.vocabulary import EXPLOIT_PORTS
from cagepool.sim import dtypes
from cagepool.sim.names import DECOYS, EDITIONS, EXPLOITS, RED_AGENTS, RED_KINDS
from cagepool.sim.trace import Trace, in_cage2_form, trace_row_dtype
from cagepool.types import Int64s, Records

Sessions: TypeAlias = dict[str, list[tuple[str, int, str, str]]]
"""Account, number, type and agent of each session, by host."""

DICTIONARY_INTERVAL = 10  # steps between two readings of CybORG's dictionary, which is slow
TRACE_REDS = tuple(RED_AGENTS)
TRACE_KINDS = (*RED_KINDS, "InvalidAction")
TRACE_DECOYS = (*DECOYS, "MisinformSmss", "MisinformSvchost")
NONE = -1

_SWEEP = TRACE_KINDS.index("DiscoverRemoteSystems")
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
    escalated: dict[int, int] = field(default_factory=dict)  # number of the session, by step
    red_actions: Int64s | None = None  # (steps,), if red was given


def record_episode(env: CybORGEnv, blue: str, seed: int) -> RecordedEpisode:
    """Play an episode with one of `FUZZ_POLICIES`; the seed determines both sides."""
    env.reset(seed=seed)
    reader = TraceRowReader(env)
    policy = FUZZ_POLICIES[blue](Random(f"blue {seed}"), env.scenario)
    red_policy = None
    if env.red == GIVEN:
        red_policy = random_red(Random(f"red {seed}"), env.scenario, env.red_action_names)
    rows = np.zeros(env.max_steps, trace_row_dtype(env.scenario))
    true_states = np.zeros(env.max_steps, dtypes.true_state(len(env.scenario.hosts)))
    blue_actions = np.zeros(env.max_steps, np.uint16)
    red_actions = np.zeros(env.max_steps, np.int64)
    sessions, escalated = {}, {}
    knowledge = rows[0].copy()
    reader.write_knowledge(knowledge)
    for step in range(env.max_steps):
        action = blue_actions[step] = policy(reader.last_target)
        red_action = None
        if red_policy is not None:
            red_action = red_actions[step] = red_policy(knowledge)
        reader.before_step()
        observation, reward, *_ = env.step(action, red_action)
        true_states[step] = env.true_state()
        reader.after_step(true_states[step], rows[step])
        knowledge = rows[step]
        if reader.escalated is not None:
            escalated[step] = reader.escalated
        rows[step]["obs"] = observation
        rows[step]["reward_tenths"] = round(10 * reward)
        if step % DICTIONARY_INTERVAL == DICTIONARY_INTERVAL - 1:
            sessions[step] = dictionary_sessions(env.true_state_dict())
    trace = _header(env, blue) | {"blue_action": blue_actions[np.newaxis]}
    trace |= {name: rows[name][np.newaxis].copy() for name in rows.dtype.names or ()}
    return RecordedEpisode(
        in_cage2_form(trace) if env.scenario == CAGE2 else trace,
        true_states[np.newaxis],
        reader.reused_pid,
        sessions,
        escalated,
        None if red_policy is None else red_actions,
    )


def dictionary_sessions(dictionary: dict[str, Any]) -> Sessions:
    """Sessions in a dictionary of the true state."""
    return {
        host: [
            (entry["Username"], entry["ID"], entry["Type"].name, entry["Agent"])
            for entry in facts.get("Sessions", ())
        ]
        for host, facts in dictionary.items()
        if host != "success"
    }


def concatenate_traces(traces: Sequence[Trace]) -> Trace:
    """Join traces of equally long episodes of one edition and scenario."""
    first = traces[0]
    return {
        name: first[name] if name == "meta" else np.concatenate([trace[name] for trace in traces])
        for name in first
    }


class TraceRowReader:
    """Reads each step of one CybORG as a trace row: moves, random draws and red's knowledge."""

    last_target: int  # host of red's last action, or -1
    escalated: int | None  # number of the session that the last step escalated
    reused_pid: bool  # a process of this episode got the id of a dead suspect

    def __init__(self, env: CybORGEnv) -> None:
        """Read from an environment whose episode has just started."""
        self._controller = env.cyborg.environment_controller
        self._decoy_numbers = env.true_state_reader.decoys
        self._hosts = {name: number for number, name in enumerate(env.scenario.hosts)}
        self._subnets = {name: number for number, name in enumerate(env.scenario.subnets)}
        self.last_target = NONE
        self.reused_pid = False
        # Draws are read right after the action that made them: when red plays before blue, a
        # Restore of the same step leaves no trace of them.
        self._controller.execute_action = self._execute

    def before_step(self) -> None:
        """Save the state that the step may change."""
        self.escalated = None
        self._draws = dict.fromkeys(("decoy_pick", "exploit", "detected", "esc_pick"), NONE)
        suspects = self._controller.state.sessions["Blue"][0].sus_pids
        self._suspects = {host: set(pids) for host, pids in suspects.items()}
        self._pids = {host: self._host_pids(host) for host in suspects}

    def after_step(self, true_state: Any, row: Any) -> None:
        """Write the trace row of the step, except for observation and reward."""
        self._write_moves(row)
        for name, draw in self._draws.items():
            row[name] = draw
        self._write_true_state(true_state, row)
        self.write_knowledge(row)
        self._write_agent_state(self._controller.state, row)

    def _execute(self, action: Any) -> Any:
        """Execute an action of CybORG, and read the draws that it made."""
        controller, state = self._controller, self._controller.state
        accounts = {number: session.username for number, session in state.sessions["Red"].items()}
        misinformed = type(action).__name__ == "Misinform"
        decoys = self._decoy_numbers(state.hosts[action.hostname].processes) if misinformed else []
        result = type(controller).execute_action(controller, action)
        if action is controller.action.get("Red"):
            self._read_red_draws(action, state, accounts)
        elif misinformed:
            placed = self._decoy_numbers(state.hosts[action.hostname].processes)[len(decoys) :]
            self._draws["decoy_pick"] = placed[0] if placed else NONE
        self.reused_pid |= any(
            suspects & self._host_pids(host) - self._pids[host]
            for host, suspects in self._suspects.items()
        )
        return result

    def _host_pids(self, host: str) -> set[int]:
        return {process.pid for process in self._controller.state.hosts[host].processes}

    def _write_moves(self, row: Any) -> None:
        action = self._controller.action["Red"]
        row["red_kind"] = kind = TRACE_KINDS.index(type(action).__name__)
        row["red_target"] = target = self._target(action)
        self.last_target = NONE if kind == _SWEEP else target
        row["green_host"] = self._target(self._controller.action.get("Green"))
        for agent in ("blue", "red"):
            success = self._controller.observation[agent.capitalize()].success
            row[f"{agent}_success"] = _SUCCESS[success.name]

    def _target(self, action: Any) -> int:
        """Index of an action's subnet or host; -1 if the action has neither."""
        state = self._controller.state
        attributes = {} if action is None else vars(action)
        if "subnet" in attributes:
            names = {subnet: name for name, subnet in state.subnet_name_to_cidr.items()}
            return self._subnets[names[action.subnet]]
        if "ip_address" in attributes:
            return self._hosts[state.ip_addresses[action.ip_address]]
        return self._hosts[action.hostname] if "hostname" in attributes else NONE

    def _read_red_draws(self, action: Any, state: Any, accounts: dict[int, str]) -> None:
        # B_line plays one action object repeatedly. The exploit that the object chose is removed
        # from it, so that a later step cannot show an old choice.
        exploit = vars(action).pop("sub_action", None)
        if exploit is not None:
            self._draws["exploit"] = EXPLOITS.index(type(exploit).__name__)
        for number, session in state.sessions["Red"].items():
            if number not in accounts:
                if session.session_type.name != "SSH":
                    events = state.hosts[session.host].events["NetworkConnections"]
                    seen = any(event.get("pid") == session.pid for event in events)
                    self._draws["detected"] = int(seen)
            elif session.username != accounts[number]:
                self.escalated = number
                self._draws["esc_pick"] = _red_sessions(state, session.host).index(session)

    @staticmethod
    def _write_true_state(true_state: Any, row: Any) -> None:
        row["s_priv"] = np.minimum(true_state["privileged"], _MAX_SESSIONS)
        row["s_user_seen"] = np.minimum(true_state["user_seen"], _MAX_SESSIONS)
        row["s_user_unseen"] = np.minimum(true_state["user_unseen"], _MAX_SESSIONS)
        row["s_decoys"] = true_state["decoys"]
        row["s_malware"] = true_state["malware"]
        row["s_ot_running"] = true_state["ot_running"]
        row["s_ot_pid_known"] = true_state["ot_pid_known"]
        row["s_ot_known"] = true_state["ot_service_known"]

    def write_knowledge(self, row: Any) -> None:
        """Write what red knows now."""
        state = self._controller.state
        known = self._controller.agent_interfaces["Red"].action_space
        ports = state.sessions["Red"][0].ports
        for address, name in state.ip_addresses.items():
            host = self._hosts[name]
            row["s_known_ip"][host] = known.ip_address[address]
            row["s_known_host"][host] = known.hostname[name]
            row["s_red_ports"][host] = _port_bits(ports[address]) if address in ports else 0
        row["s_known_net"] = [
            known.subnet[state.subnet_name_to_cidr[name]] for name in self._subnets
        ]

    def _write_agent_state(self, state: Any, row: Any) -> None:
        agent = self._controller.agent_interfaces["Red"].agent
        kind = type(agent).__name__
        row["s_bline_pos"] = agent.action if kind == "B_lineAgent" else NONE
        if kind == "RedMeanderAgent":
            sets = (
                [state.ip_addresses[address] for address in agent.scanned_ips],
                [state.ip_addresses[address] for address in agent.exploited_ips],
                agent.escalated_hosts,
                agent.host_ip_map,
            )
            row["s_meander"] = [[host in names for host in self._hosts] for names in sets]


def _header(env: CybORGEnv, blue: str) -> dict[str, NDArray[Any]]:
    scenario = env.scenario
    names = {
        "scenario": scenario.name,
        "hash": scenario.hash,
        "edition": env.edition,
        "edition_names": list(EDITIONS),
        "red_names": TRACE_REDS,
        "policy_names": list(FUZZ_POLICIES),
        "hosts": scenario.hosts,
        "subnets": scenario.subnets,
        "actions": scenario.action_kinds,
        "red_kinds": TRACE_KINDS,
        "exploits": EXPLOITS,
        "decoys": TRACE_DECOYS,
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
    bits = enumerate(EXPLOIT_PORTS.values())
    return _SCANNED + sum(1 << bit for bit, port in bits if port in scanned)
