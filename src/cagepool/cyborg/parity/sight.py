"""What a step of CybORG drew and did, and what red knows after it."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from cagepool.cyborg import CybORGEnv
from cagepool.sim.names import EXPLOITS, RED_KINDS, SUBNETS, host_index

EXPLOIT_PORTS = (139, 3389, 80, 443, 22, 3390, 25, 21)  # in the order of EXPLOITS
NONE = -1

_SWEEP = RED_KINDS.index("DiscoverRemoteSystems")
_SUCCESS = {"TRUE": 1, "FALSE": 0, "UNKNOWN": NONE}
_SCANNED = 256
_MOST = 127  # sessions that a trace can count


class Sight:
    """Looks at one CybORG before and after each step."""

    last_target: int  # host that red went for in the last step, or -1
    reused_pid: bool  # a process of this episode got the id of a dead suspect

    def __init__(self, env: CybORGEnv) -> None:
        """Look at an environment whose episode has just begun."""
        self._controller = env.cyborg.environment_controller
        self.last_target = NONE
        self.reused_pid = False

    def before(self) -> None:
        """Note what the step may change."""
        state = self._controller.state
        self._accounts = {
            number: session.username for number, session in state.sessions["Red"].items()
        }
        suspects = state.sessions["Blue"][0].sus_pids
        self._suspects = {host: set(pids) for host, pids in suspects.items()}
        self._pids = {host: set(self._running(host)) for host in suspects}

    def after(self, truth: Any, row: Any) -> None:
        """Fill in the trace row of the step, but for what the environment has returned."""
        state = self._controller.state
        self._fill_moves(row)
        self._fill_draws(state, row)
        self._fill_truth(truth, row)
        self._fill_knowledge(state, row)
        self._fill_agent(state, row)
        self.reused_pid |= any(
            pid in pids and pid not in self._pids[host]
            for host, pids in self._suspects.items()
            for pid in self._running(host)
        )

    def _running(self, host: str) -> Iterator[int]:
        return (process.pid for process in self._controller.state.hosts[host].processes)

    def _fill_moves(self, row: Any) -> None:
        move = self._controller.action["Red"]
        row["red_kind"] = kind = RED_KINDS.index(type(move).__name__)
        row["red_target"] = target = self._target(move)
        self.last_target = NONE if kind == _SWEEP else target
        row["green_host"] = self._target(self._controller.action["Green"])
        for agent in ("blue", "red"):
            success = self._controller.observation[agent.capitalize()].success
            row[f"{agent}_success"] = _SUCCESS[success.name]

    def _target(self, move: Any) -> int:
        """Index of the subnet or host of an action; -1 if it has none."""
        state = self._controller.state
        of_move = vars(move)
        if "subnet" in of_move:
            names = {subnet: name for name, subnet in state.subnet_name_to_cidr.items()}
            return SUBNETS.index(names[move.subnet])
        if "ip_address" in of_move:
            return host_index(state.ip_addresses[move.ip_address])
        return host_index(move.hostname) if "hostname" in of_move else NONE

    def _fill_draws(self, state: Any, row: Any) -> None:
        # B_line plays the same action object again and again: what it chose is taken out of it,
        # so that a later step cannot show it.
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
                row["esc_pick"] = _sessions_on(state, session.host).index(session)

    @staticmethod
    def _fill_truth(truth: Any, row: Any) -> None:
        row["s_priv"] = np.minimum(truth["privileged"], _MOST)
        row["s_user_seen"] = np.minimum(truth["user_seen"], _MOST)
        row["s_user_unseen"] = np.minimum(truth["user_unseen"], _MOST)
        row["s_decoys"] = truth["decoys"]
        row["s_malware"] = truth["malware"]
        row["s_ot"] = [truth[name] for name in ("ot_running", "ot_pid_known", "ot_service_known")]

    def _fill_knowledge(self, state: Any, row: Any) -> None:
        known = self._controller.agent_interfaces["Red"].action_space
        ports = state.sessions["Red"][0].ports
        for address, name in state.ip_addresses.items():
            host = host_index(name)
            row["s_known_ip"][host] = known.ip_address[address]
            row["s_known_host"][host] = known.hostname[name]
            row["s_red_ports"][host] = _port_bits(ports[address]) if address in ports else 0
        row["s_known_net"] = [known.subnet[state.subnet_name_to_cidr[name]] for name in SUBNETS]

    def _fill_agent(self, state: Any, row: Any) -> None:
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


def _sessions_on(state: Any, host: str) -> list[Any]:
    return [session for session in state.sessions["Red"].values() if session.host == host]


def _port_bits(ports: Iterable[int]) -> int:
    seen = set(ports)
    return _SCANNED + sum(1 << bit for bit, port in enumerate(EXPLOIT_PORTS) if port in seen)


def _host_bits(names: Iterable[str]) -> int:
    return sum({1 << host_index(name) for name in names})
