"""Reads CybORG's objects into the true-state record of the native games."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from cagepool.cyborg import locate
from cagepool.cyborg.dict_state import scenario
from cagepool.sim import dtypes
from cagepool.sim.names import HOSTS, RED_AGENTS, edition_code, host_index
from cagepool.types import Records

PRIVILEGED_ACCOUNTS = ("root", "SYSTEM")
MALWARE_DENSITY = 0.9
MAX_COUNT = 255  # native games saturate their session counts here

_COMPROMISED = {"No": 0, "Unknown": 1, "User": 2, "Privileged": 3}
_DECOY_BITS = {decoy.name: 1 << number for number, decoy in enumerate(scenario.DECOYS)}
_REPEATED_DECOY = 1 << len(scenario.DECOYS)
_MAIL_SERVERS = ("User3", "User4")


class TrueStateReader:
    """Reads the true state of one CybORG without its slow dictionary, and changes nothing."""

    def __init__(self, controller: Any, table: Any, red: str, edition: str) -> None:
        """Read from an environment controller and from the wrapper that holds blue's table."""
        self._controller = controller
        self._table = table
        self._genuine = locate.import_object("Shared.Enums.DecoyType").NONE
        self._vulnerable = locate.import_object("Shared.Enums.ProcessVersion").HARAKA_2_7_0
        self._constants = np.zeros((), dtypes.TRUE_STATE)
        self._constants["red"] = int(RED_AGENTS[red])
        self._constants["edition"] = int(edition_code(edition))

    def read(self) -> Records:
        """Return the current state, shape (), fields of `sim.dtypes.TRUE_STATE`."""
        record = self._constants.copy()
        state = self._controller.state
        self._read_sessions(state, record)
        hosts = [state.hosts[name] for name in HOSTS]
        record["decoys"] = [self._decoys(host.processes) for host in hosts]
        record["malware"] = [_has_malware(host.files) for host in hosts]
        table = self._table.blue_info
        record["compromised"] = [_COMPROMISED[table[name][-1]] for name in HOSTS]
        server = state.hosts["Op_Server0"]
        record["ot_running"] = any(process.name == "OTService" for process in server.processes)
        record["ot_pid_known"] = server.services["OTService"]["process"] is not None
        record["ot_service_known"] = state.sessions["Red"][0].ot_service is not None
        record["mail_immune"] = sum(
            1 << bit
            for bit, name in enumerate(_MAIL_SERVERS)
            if self._is_immune(state.hosts[name].processes)
        )
        return record

    @staticmethod
    def _read_sessions(state: Any, record: Records) -> None:
        suspicious = state.sessions["Blue"][0].sus_pids
        privileged, seen, unseen = ([0] * len(HOSTS) for _ in range(3))
        for session in state.sessions["Red"].values():
            if session.username in PRIVILEGED_ACCOUNTS:
                counts = privileged
            else:
                counts = seen if session.pid in suspicious.get(session.host, ()) else unseen
            counts[host_index(session.host)] += 1
        for name, counts in (
            ("privileged", privileged),
            ("user_seen", seen),
            ("user_unseen", unseen),
        ):
            record[name] = [min(count, MAX_COUNT) for count in counts]
        record["access"] = [
            2 if privileged[host] else 1 if seen[host] or unseen[host] else 0
            for host in range(len(HOSTS))
        ]

    def _decoys(self, processes: Iterable[Any]) -> int:
        decoys = 0
        for process in processes:
            if process.decoy_type is not self._genuine:
                bit = _DECOY_BITS[process.name]
                decoys += _REPEATED_DECOY if decoys & bit else bit
        return decoys

    def _is_immune(self, processes: Iterable[Any]) -> bool:
        return any(
            process.name == "smtp" and process.version is not self._vulnerable
            for process in processes
        )


def _has_malware(files: Iterable[Any]) -> bool:
    return any(file.density >= MALWARE_DENSITY for file in files)
