"""The dictionary of the true state, in CybORG's form."""

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cagepool import Scenario
from cagepool.cyborg.dict_state import enumerations, true_state_dict
from cagepool.cyborg.dict_state.enumerations import (
    Architecture,
    OperatingSystemDistribution,
    OperatingSystemType,
    OperatingSystemVersion,
    ProcessName,
    ProcessType,
    ProcessVersion,
    SessionType,
    TransportProtocol,
    TrinaryEnum,
)
from cagepool.sim import Batch
from cagepool.sim.names import EXPLOITS, HOSTS, host_index
from tests.scenarios.files import FOLDER, Content, content_of, load_changed, write
from tests.sim.games import SEEDS, play_step, start_batch

WAY_IN = (
    "DiscoverRemoteSystems User",
    "DiscoverNetworkServices User1",
    "ExploitRemoteService User1",
)


def entered() -> Batch:
    """A game in which red has just taken User1 by way of its FTP server."""
    batch = start_batch(1, seed=1, red="given")
    for red in WAY_IN:
        play_step(batch, "Sleep", red)
    assert EXPLOITS[batch.moves["exploit"][0]] == "FTPDirectoryTraversal"
    return batch


def process(state: dict[str, Any], host: str, name: str) -> dict[str, Any]:
    found = [entry for entry in state[host]["Processes"] if entry["Process Name"] == name]
    assert len(found) == 1
    return dict(found[0])


def test_the_keys_stand_in_the_order_of_cyborg() -> None:
    state = true_state_dict(start_batch(), 0)

    assert list(state) == ["success", *HOSTS]
    assert state["success"] is TrinaryEnum.UNKNOWN
    for host in HOSTS:
        parts = ["Processes", "Interface", "Sessions", "User Info", "System info"]
        assert list(state[host]) == parts


def test_a_windows_host_looks_as_in_cyborg() -> None:
    state = true_state_dict(start_batch(), 0)["User1"]
    pids = [session.pop("PID") for session in state["Sessions"]]

    assert state["System info"] == {
        "Hostname": "User1",
        "OSType": OperatingSystemType.WINDOWS,
        "OSDistribution": OperatingSystemDistribution.WINDOWS_SVR_2008,
        "OSVersion": OperatingSystemVersion.W6_1_7601,
        "Architecture": Architecture.x64,
    }
    assert state["User Info"] == [
        {"Username": "Administrator", "Groups": [{"GID": 0}]},
        {"Username": "GreenAgent"},
        {"Username": "vagrant", "Password": "vagrant", "Groups": [{"GID": 0}]},
        {"Username": "SYSTEM"},
    ]
    client, green = SessionType.VELOCIRAPTOR_CLIENT, SessionType.GREY_SESSION
    assert state["Sessions"] == [
        {"Username": "ubuntu", "ID": 2, "Timeout": 0, "Type": client, "Agent": "Blue"},
        {"Username": "GreenAgent", "ID": 1, "Timeout": 0, "Type": green, "Agent": "Green"},
    ]
    assert [(entry["PID"], entry["Process Name"]) for entry in state["Processes"]] == [
        (3368, "sshd.exe"),
        (3344, "femitter.exe"),
        (pids[0], "VelociraptorClient"),
        (pids[1], "green_session"),
    ]


def test_a_linux_host_looks_as_in_cyborg() -> None:
    state = true_state_dict(start_batch(), 0)["User4"]

    assert state["System info"]["OSVersion"] is OperatingSystemVersion.U18_04_3
    assert [account["Username"] for account in state["User Info"]] == [
        *("root", "www-data", "pi", "ubuntu", "GreenAgent")
    ]
    listening = [
        [link["local_port"] for link in entry["Connections"]] for entry in state["Processes"][:4]
    ]
    assert listening == [[22], [3390], [80, 443], [25]]
    mail = state["Processes"][3]
    assert list(mail) == [
        *("PID", "PPID", "Process Name", "Known Process", "Username", "Path", "Known Path"),
        *("Connections", "Process Type", "Process Version"),
    ]
    assert mail["Connections"][0] == {
        "local_port": 25,
        "local_address": IPv4Address("0.0.0.0"),
        "Transport Protocol": TransportProtocol.UNKNOWN,
    }


@pytest.mark.parametrize(
    ("host", "blue", "green"),
    [
        ("Defender", [0, 9], []),
        ("Enterprise0", [6], []),
        ("Enterprise2", [8], []),
        ("Op_Host2", [13], [7]),
        ("Op_Server0", [10], []),
        ("User0", [1], [0]),
        ("User4", [5], [4]),
    ],
)
def test_sessions_that_never_end_have_their_numbers(
    host: str, blue: list[int], green: list[int]
) -> None:
    sessions = true_state_dict(start_batch(), 0)[host]["Sessions"]
    assert [s["ID"] for s in sessions if s["Agent"] == "Blue"] == blue
    assert [s["ID"] for s in sessions if s["Agent"] == "Green"] == green
    user = "SYSTEM" if host == "Enterprise2" else "ubuntu"
    assert {s["Username"] for s in sessions if s["Agent"] == "Blue"} == {user}


def test_a_reverse_shell_is_listed_with_both_its_ends() -> None:
    state = true_state_dict(entered(), 0)
    shell, foothold = (
        process(state, "User1", "cmd.exe"),
        process(state, "User0", "RedAbstractSession"),
    )
    near, far = (state[host]["Interface"][-1]["IP Address"] for host in ("User1", "User0"))
    port = shell["Connections"][0]["local_port"]

    assert shell == state["User1"]["Processes"][-1]
    assert shell == {
        "PID": shell["PID"],
        "PPID": 1,
        "Process Name": "cmd.exe",
        "Known Process": ProcessName.CMD,
        "Username": "SYSTEM",
        "Path": "C:\\temp\\",
        "Known Path": enumerations.Path.TEMP,
        "Connections": [
            {
                "local_port": port,
                "remote_port": 4444,
                "local_address": near,
                "remote_address": far,
            }
        ],
        "Process Type": ProcessType.UNKNOWN,
    }
    assert foothold["Connections"] == [
        {"local_port": 4444, "remote_port": port, "local_address": far, "remote_address": near}
    ]
    assert state["User1"]["Sessions"][-1] == {
        "Username": "SYSTEM",
        "ID": 1,
        "Timeout": 0,
        "PID": shell["PID"],
        "Type": SessionType.RED_REVERSE_SHELL,
        "Agent": "Red",
    }


def test_an_escalated_ssh_session_changes_its_user_only() -> None:
    batch = entered()
    play_step(batch, "Sleep", "PrivilegeEscalate User1")  # reveals Enterprise1
    play_step(batch, "Sleep", "DiscoverNetworkServices User4")
    while process_names(batch, "User4").count("sshd") < 2:
        play_step(batch, "Restore User4", "ExploitRemoteService User4")
    before = true_state_dict(batch, 0)["User4"]

    play_step(batch, "Sleep", "PrivilegeEscalate User4")

    after = true_state_dict(batch, 0)["User4"]
    assert (before["Sessions"][-1]["Username"], before["Processes"][-1]["Username"]) == ("pi", "pi")
    for part in ("Sessions", "Processes"):
        assert after[part][-1] == before[part][-1] | {"Username": "root"}
        assert after[part][:-1] == before[part][:-1]
    assert after["Sessions"][-1]["Type"] is SessionType.SSH
    assert after["Processes"][-1]["PPID"] == 1091


def process_names(batch: Batch, host: str) -> list[str]:
    return [entry["Process Name"] for entry in true_state_dict(batch, 0)[host]["Processes"]]


@pytest.mark.parametrize(
    ("decoy", "host", "entry"),
    [
        ("Apache", "User1", ("apache2", "APACHE2", "ubuntu", 80, "WEBSERVER")),
        ("Femitter", "User2", ("femitter", "UNKNOWN", "SYSTEM", 21, "FEMITTER")),
        ("HarakaSMPT", "Op_Host0", ("haraka", "UNKNOWN", "ubuntu", 25, "SMTP")),
        ("Smss", "User0", ("Smss.exe", "SMSS", "ubuntu", 139, "SMB")),
        ("SSHD", "User3", ("Sshd.exe", "SSHD", "ubuntu", 22, "SSH")),
        ("Svchost", "User1", ("Svchost.exe", "SVCHOST", "ubuntu", 3389, "RDP")),
        ("Tomcat", "Defender", ("Tomcat.exe", "UNKNOWN", "ubuntu", 443, "WEBSERVER")),
        ("Vsftpd", "User4", ("vsftpd", "UNKNOWN", "ubuntu", 80, "WEBSERVER")),
    ],
)
def test_a_decoy_is_a_process_between_the_genuine_ones_and_the_sessions(
    decoy: str, host: str, entry: tuple[str, str, str, int, str]
) -> None:
    batch = start_batch()
    before = true_state_dict(batch, 0)[host]
    play_step(batch, f"Decoy{decoy} {host}")
    after = true_state_dict(batch, 0)[host]

    place = len(before["Processes"]) - len(before["Sessions"])
    found = after["Processes"].pop(place)
    assert after == before
    name, known, user, port, kind = entry
    version = {"Process Version": ProcessVersion.HARAKA_2_7_0} if decoy == "HarakaSMPT" else {}
    assert found == {
        "PID": found["PID"],
        "PPID": 1,
        "Process Name": name,
        "Known Process": ProcessName[known],
        "Username": user,
        "Connections": [
            {
                "local_port": port,
                "local_address": IPv4Address("0.0.0.0"),
                "Transport Protocol": TransportProtocol.UNKNOWN,
            }
        ],
        "Process Type": ProcessType[kind],
        **version,
    }


def test_vsftpd_is_listed_as_often_as_it_was_placed() -> None:
    batch = start_batch()
    for _ in range(3):
        play_step(batch, "DecoyVsftpd Enterprise0")
    pids = [p["PID"] for p in true_state_dict(batch, 0)["Enterprise0"]["Processes"]]
    assert process_names(batch, "Enterprise0") == ["sshd", *["vsftpd"] * 3, "VelociraptorClient"]
    assert len(set(pids)) == 5


@pytest.mark.parametrize(
    ("edition", "version"),
    [("2.1", ProcessVersion.HARAKA_2_7_0), ("leaderboard", ProcessVersion.UNKNOWN)],
)
def test_a_restored_mail_server_shows_its_edition(edition: str, version: ProcessVersion) -> None:
    batch = start_batch(edition=edition)
    play_step(batch, "Restore User3")
    state = true_state_dict(batch, 0)
    assert process(state, "User3", "smtp")["Process Version"] is version
    assert process(state, "User4", "smtp")["Process Version"] is ProcessVersion.HARAKA_2_7_0


def test_the_ot_service_is_listed_while_it_runs() -> None:
    batch = start_batch(1, seed=3, red="b_line")
    assert process_names(batch, "Op_Server0") == ["sshd", "OTService", "VelociraptorClient"]
    while batch.true_state["ot_running"][0].any():
        play_step(batch, "Sleep")
    assert "OTService" not in process_names(batch, "Op_Server0")
    play_step(batch, "Restore Op_Server0")
    assert process_names(batch, "Op_Server0")[1] == "OTService"


def test_a_restored_host_looks_as_at_the_start() -> None:
    batch = start_batch(1, seed=5, red="given", max_steps=500)
    start = true_state_dict(batch, 0)
    rng = np.random.default_rng(0)
    for _ in range(300):
        batch.step(rng.integers(41, 132, 1), rng.integers(0, 44, 1))  # decoys against everything
    disturbed = true_state_dict(batch, 0)
    assert all(disturbed[host]["Processes"] != start[host]["Processes"] for host in HOSTS)

    for host in HOSTS:
        play_step(batch, f"Restore {host}", "Sleep")

    restored = true_state_dict(batch, 0)
    assert process(restored, "User0", "RedAbstractSession").pop("Connections")
    for state in (start, restored):
        state["User0"]["Processes"].pop()  # red's foothold, whose connections are not forgotten
    assert restored == start


@given(seed=SEEDS, policy=st.integers(0, 100))
def test_sessions_and_processes_agree_with_the_counts(seed: int, policy: int) -> None:
    batch = start_batch(2, seed, red=["b_line", "meander"])
    rng = np.random.default_rng(policy)
    for _ in range(40):
        batch.step(rng.integers(0, 145, 2))
    for game in range(2):
        state = true_state_dict(batch, game)
        truth = batch.true_state[game]
        for host in HOSTS:
            red = [s for s in state[host]["Sessions"] if s["Agent"] == "Red"]
            privileged = [s for s in red if s["Username"] in ("root", "SYSTEM")]
            seen, unseen = (truth[kind][host_index(host)] for kind in ("user_seen", "user_unseen"))
            assert len(privileged) == truth["privileged"][host_index(host)]
            assert len(red) - len(privileged) == seen + unseen
            assert [s["ID"] for s in red] == sorted(s["ID"] for s in red)
            owners = [(s["PID"], s["Username"]) for s in state[host]["Sessions"]]
            processes = state[host]["Processes"]
            assert [(p["PID"], p["Username"]) for p in processes[-len(owners) :]] == owners
            pids = [p["PID"] for p in processes]
            assert len(set(pids)) == len(pids)
            assert all(1 <= pid <= 32767 for pid in pids)


def labels(state: dict[str, Any]) -> list[tuple[IPv4Address, list[int]]]:
    return [
        (state[host]["Interface"][-1]["IP Address"], [s["PID"] for s in state[host]["Sessions"]])
        for host in HOSTS
    ]


def test_addresses_and_process_ids_last_for_an_episode() -> None:
    batch = start_batch(2, red="sleep", max_steps=3, autoreset="same_step")
    first, neighbour = (labels(true_state_dict(batch, game)) for game in range(2))
    play_step(batch, "DecoyTomcat User1")
    play_step(batch, "Restore User1")
    assert labels(true_state_dict(batch, 0)) == first
    play_step(batch, "Sleep")  # the episode ends
    again = labels(true_state_dict(batch, 0))
    assert first != neighbour
    assert first != again


@given(seed=SEEDS)
def test_subnets_are_three_small_networks_and_hosts_live_in_theirs(seed: int) -> None:
    state = true_state_dict(start_batch(1, seed), 0)
    subnets: dict[IPv4Network, set[str]] = {}
    for host in HOSTS:
        loopback, own = state[host]["Interface"][-2:]
        assert loopback["IP Address"] == IPv4Address("127.0.0.1")
        assert own["IP Address"] in list(own["Subnet"].hosts())
        assert own["Subnet"].prefixlen == 28
        assert own["Subnet"].subnet_of(IPv4Network("10.0.0.0/16"))
        subnets.setdefault(own["Subnet"], set()).add(host[:2])
    assert sorted(map(sorted, subnets.values())) == [["De", "En"], ["Op"], ["Us"]]
    assert len({state[host]["Interface"][-1]["IP Address"] for host in HOSTS}) == len(HOSTS)


def test_each_call_builds_the_dictionary_anew() -> None:
    batch = start_batch()
    first = true_state_dict(batch, 0)
    expected = true_state_dict(batch, 0)
    first["User1"]["Sessions"].clear()
    first["User1"]["Processes"][0]["Connections"].clear()
    assert true_state_dict(batch, 0) == expected


@pytest.mark.parametrize("game", [-1, 1])
def test_a_game_that_does_not_exist_is_refused(game: int) -> None:
    with pytest.raises(IndexError, match=f"index must be below 1, got {game}"):
        true_state_dict(start_batch(), game)


def dictionary_of(scenario: Scenario) -> dict[str, Any]:
    return true_state_dict(start_batch(1, scenario=scenario), 0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("green_session", SessionType.GREY_SESSION),
        ("shell", SessionType.SHELL),
        ("Local Shell", SessionType.LOCAL_SHELL),
        ("whatever", SessionType.UNKNOWN),
    ],
)
def test_sessions_of_green_may_have_any_type(
    tmp_path: Path, name: str, expected: SessionType
) -> None:
    def change(content: Content) -> None:
        content["Agents"]["Green"]["starting_sessions"][0]["type"] = name

    state = dictionary_of(load_changed(tmp_path, change))

    types = {
        session["Type"]
        for host in HOSTS
        for session in state[host]["Sessions"]
        if session["Agent"] == "Green"
    }
    assert expected in types


def test_files_that_play_the_same_game_keep_their_own_accounts(tmp_path: Path) -> None:
    def change(content: Content) -> None:
        for session in content["Agents"]["Blue"]["starting_sessions"]:
            session["username"] = "bob"

    plain, changed = load_changed(tmp_path, lambda _: None), load_changed(tmp_path, change)
    assert plain == changed

    accounts = [
        {
            session["Username"]
            for session in dictionary_of(scenario)["Enterprise0"]["Sessions"]
            if session["Agent"] == "Blue"
        }
        for scenario in (plain, changed)
    ]

    assert accounts == [{"ubuntu"}, {"bob"}]


def test_files_that_play_the_same_game_keep_their_own_images(tmp_path: Path) -> None:
    original = (FOLDER / "images" / "own_win_full.yaml").read_text(encoding="utf-8")
    scenarios = []
    for name in ("first", "second"):
        (tmp_path / f"{name}.yaml").write_text(original, encoding="utf-8")
        content = content_of()
        content["Hosts"]["User1"]["image"] = name
        scenarios.append(Scenario.load(write(tmp_path, content), images=tmp_path))
    assert scenarios[0] == scenarios[1]

    first, second = map(dictionary_of, scenarios)

    assert first["User1"]["System info"] == second["User1"]["System info"]
