"""Reads CybORG's objects into the true-state record of the native games."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from cagepool.cyborg import locate
from cagepool.cyborg.dict_state.images import DECOYS
from cagepool.scenarios import Scenario
from cagepool.scenarios.vocabulary import PRIVILEGED_ACCOUNTS
from cagepool.sim import dtypes
from cagepool.sim.names import RED_AGENTS, edition_code
from cagepool.types import Records

MALWARE_DENSITY = 0.9
MAX_COUNT = 255  # native games saturate their session counts here
OT_SERVICE = "OTService"

_COMPROMISED = {"No": 0, "Unknown": 1, "User": 2, "Privileged": 3}
_DECOY_BITS = (*range(8), 14, 15)  # by decoy number; the bits between count further Vsftpd
_REPEATED_DECOY = 1 << 8
_DECOY_NUMBERS = {(decoy.name, decoy.type.name): number for number, decoy in enumerate(DECOYS)}


class TrueStateReader:
    """Reads the true state of one CybORG without its slow dictionary, and changes nothing."""

    def __init__(
        self, controller: Any, table: Any, scenario: Scenario, *, red: str, edition: str
    ) -> None:
        """Read from an environment controller and from the wrapper that holds blue's table."""
        self._controller = controller
        self._table = table
        self._scenario = scenario
        self._genuine = locate.import_object("Shared.Enums.DecoyType").NONE
        self._vulnerable = locate.import_object("Shared.Enums.ProcessVersion").HARAKA_2_7_0
        self._mail = locate.import_object("Shared.Enums.ProcessType").SMTP
        self._constants = np.zeros((), dtypes.true_state(len(scenario.hosts)))
        self._constants["red"] = int(RED_AGENTS[red])
        self._constants["edition"] = int(edition_code(edition))

    def read(self) -> Records:
        """Return the current state, shape (), of type `dtypes.true_state`."""
        record = self._constants.copy()
        state = self._controller.state
        self._read_sessions(state, record)
        hosts = [state.hosts[name] for name in self._scenario.hosts]
        record["decoys"] = [_decoy_bits(self.decoys(host.processes)) for host in hosts]
        record["malware"] = [_has_malware(host.files) for host in hosts]
        table = self._table.blue_info
        record["compromised"] = [_COMPROMISED[table[host.hostname][-1]] for host in hosts]
        record["ot_running"] = [
            any(process.name == OT_SERVICE for process in host.processes) for host in hosts
        ]
        record["ot_pid_known"] = [_is_service_pid_known(host.services) for host in hosts]
        record["mail_immune"] = [self._is_immune(host.processes) for host in hosts]
        record["ot_service_known"] = state.sessions["Red"][0].ot_service is not None
        return record

    def decoys(self, processes: Iterable[Any]) -> list[int]:
        """Numbers of the decoys among the processes of a host."""
        return [
            _DECOY_NUMBERS[process.name, process.process_type.name]
            for process in processes
            if process.decoy_type is not self._genuine
        ]

    def _read_sessions(self, state: Any, record: Records) -> None:
        suspicious = state.sessions["Blue"][0].sus_pids
        names = ("privileged", "user_seen", "user_unseen")
        counts = {name: dict.fromkeys(self._scenario.hosts, 0) for name in names}
        for session in state.sessions["Red"].values():
            if session.username in PRIVILEGED_ACCOUNTS:
                name = "privileged"
            elif session.pid in suspicious.get(session.host, ()):
                name = "user_seen"
            else:
                name = "user_unseen"
            counts[name][session.host] += 1
        for name in names:
            record[name] = [min(count, MAX_COUNT) for count in counts[name].values()]
        has_user = (record["user_seen"] > 0) | (record["user_unseen"] > 0)
        record["access"] = np.where(record["privileged"] > 0, 2, has_user)

    def _is_immune(self, processes: Iterable[Any]) -> bool:
        return any(
            process.process_type is self._mail
            and process.decoy_type is self._genuine
            and process.version is not self._vulnerable
            for process in processes
        )


def _decoy_bits(decoys: Iterable[int]) -> int:
    bits = 0
    for number in decoys:
        bit = 1 << _DECOY_BITS[number]
        bits += _REPEATED_DECOY if bits & bit else bit
    return bits


def _is_service_pid_known(services: Any) -> bool:
    return OT_SERVICE in services and services[OT_SERVICE]["process"] is not None


def _has_malware(files: Iterable[Any]) -> bool:
    return any(file.density >= MALWARE_DENSITY for file in files)
