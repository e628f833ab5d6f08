"""Files and red agents that the rules refuse (docs/scenarios.md, 0.2 to 0.4, 1.6.2, 6.4)."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cagepool import Scenario
from tests.scenarios.files import FOLDER, Content, content_of, load_changed, sample, write

KNOWN = {"Interfaces": "All", "System info": "All"}


def put(path: str, value: object) -> Callable[[Content], None]:
    """Change that sets a field, given by its path in the file: `/` separates names and indices."""

    def change(content: Any) -> None:
        *parents, last = [int(key) if key.isdigit() else key for key in path.split("/")]
        for key in parents:
            content = content[key]
        content[last] = value

    return change


def drop(path: str) -> Callable[[Content], None]:
    def change(content: Any) -> None:
        *parents, last = [int(key) if key.isdigit() else key for key in path.split("/")]
        for key in parents:
            content = content[key]
        del content[last]

    return change


def add_subnet(content: Content, name: str) -> None:
    content["Subnets"][name] = {"Hosts": ["User4"], "Size": 4, "NACLs": {"all": {"in": "all"}}}
    for agent in content["Agents"].values():
        agent["AllowedSubnets"].append(name)


def add_hosts(content: Content, count: int) -> None:
    for name in (f"Extra{i}" for i in range(count)):
        content["Hosts"][name] = {"image": "Gateway"}
        content["Subnets"]["User"]["Hosts"].append(name)
        content["Agents"]["Blue"]["INT"]["Hosts"][name] = {**KNOWN}


def too_many_subnets(content: Content) -> None:
    for i in range(14):
        add_subnet(content, f"Net{i}")


def rename_red(content: Content) -> None:
    content["Agents"]["Purple"] = content["Agents"].pop("Red")


def second_server(content: Content) -> None:
    sessions = content["Agents"]["Blue"]["starting_sessions"]
    sessions.append({**sessions[-1], "hostname": "User1", "name": "Second"})


def linux_entry_as_system(content: Content) -> None:
    content["Agents"]["Red"]["starting_sessions"][0]["hostname"] = "User3"
    content["Agents"]["Red"]["INT"]["Hosts"] = {"User3": {**KNOWN}}


SESSIONS = "Agents/Blue/starting_sessions"  # 13 clients in the order of hosts, then the server
RED = "Agents/Red/starting_sessions/0"
CASES: dict[str, tuple[Callable[[Content], Any], str]] = {
    # Agents
    "agent named Purple": (
        rename_red,
        "Agents must be Blue and Red, and may be Green; got Blue, G",
    ),
    "no agents": (put("Agents", {}), "Agents must be Blue and Red, and may be Green; got none"),
    "Blue without adversary": (drop("Agents/Blue/adversary"), "Agents.Blue.adversary must be Red"),
    "other adversary": (put("Agents/Blue/adversary", "Green"), "Agents.Blue.adversary must be Red"),
    "reward of Blue": (
        put("Agents/Blue/reward_calculator_type", "Baseline"),
        "Agents.Blue.reward_calculator_type must be HybridAvailabilityConfidentiality, got 'Bas",
    ),
    "reward of Red": (
        put("Agents/Red/reward_calculator_type", "Baseline"),
        "Agents.Red.reward_calculator_type must be HybridImpactPwn, Pwn, Disrupt or None, got 'B",
    ),
    "reward of Green": (
        put("Agents/Green/reward_calculator_type", "Pwn"),
        "Agents.Green.reward_calculator_type must be None, got 'Pwn'",
    ),
    "wrappers": (put("Agents/Red/wrappers", ["X"]), "Agents.Red.wrappers must be empty, got ['X']"),
    "AllowedSubnets of Blue misses one": (
        drop("Agents/Blue/AllowedSubnets/0"),
        "Agents.Blue.AllowedSubnets must name all subnets (Enterprise, Operational, User)",
    ),
    "AllowedSubnets of Red misses one": (
        drop("Agents/Red/AllowedSubnets/1"),
        "Agents.Red.AllowedSubnets must name all subnets",
    ),
    "AllowedSubnets of Green misses one": (
        drop("Agents/Green/AllowedSubnets/1"),
        "Agents.Green.AllowedSubnets must name all subnets",
    ),
    "AllowedSubnets names an unknown subnet": (
        put("Agents/Red/AllowedSubnets/0", "Ghost"),
        "Agents.Red.AllowedSubnets must name all subnets",
    ),
    # What blue knows and does
    "INT of Blue misses a host": (
        drop("Agents/Blue/INT/Hosts/User1"),
        "Agents.Blue.INT.Hosts must have every host with Interfaces: All and System info: All, U",
    ),
    "INT of Blue without System info": (
        drop("Agents/Blue/INT/Hosts/User1/System info"),
        "Agents.Blue.INT.Hosts.User1.System info must be All, got nothing",
    ),
    "INT of Blue with an address only": (
        put("Agents/Blue/INT/Hosts/User1/Interfaces", "IP Address"),
        "Agents.Blue.INT.Hosts.User1.Interfaces must be All, got 'IP Address'",
    ),
    "INT of Blue with further fields": (
        put("Agents/Blue/INT/Hosts/User1/Processes", "All"),
        "the fields of Agents.Blue.INT.Hosts.User1 must be one of Interfaces, System info, User",
    ),
    "INT of Blue names an unknown host": (
        put("Agents/Blue/INT/Hosts/Ghost", {}),
        "names in Agents.Blue.INT.Hosts must be hosts, got 'Ghost'",
    ),
    "INT with further fields": (
        put("Agents/Blue/INT/Subnets", {}),
        "the fields of Agents.Blue.INT must be one of Hosts; got 'Subnets'",
    ),
    "no action of Blue": (
        put("Agents/Blue/actions", []),
        "Agents.Blue.actions must name at least one action, got []",
    ),
    "unknown action of Blue": (
        put("Agents/Blue/actions/1", "Reboot"),
        "Agents.Blue.actions[1] must be Sleep, Monitor, Analyse,",
    ),
    "no VelociraptorServer": (
        drop(f"{SESSIONS}/13"),
        "Agents.Blue.starting_sessions must have one session without parent, a VelociraptorServer",
    ),
    "two VelociraptorServers": (
        second_server,
        "Agents.Blue.starting_sessions must have one session without parent, a VelociraptorServer",
    ),
    "another server": (
        put(f"{SESSIONS}/13/type", "SSH"),
        "Agents.Blue.starting_sessions[13].type must be VelociraptorServer, got 'SSH'",
    ),
    "server without an artifact": (
        drop(f"{SESSIONS}/13/artifacts/0"),
        "Agents.Blue.starting_sessions[13].artifacts must be NetworkConnections and ProcessCre",
    ),
    "another client": (
        put(f"{SESSIONS}/2/type", "SSH"),
        "Agents.Blue.starting_sessions[2].type must be VelociraptorClient, got 'SSH'",
    ),
    "client of another server": (
        put(f"{SESSIONS}/2/parent", "Other"),
        "Agents.Blue.starting_sessions[2].parent must be VeloServer, got 'Other'",
    ),
    "client on an unknown host": (
        put(f"{SESSIONS}/2/hostname", "Ghost"),
        "Agents.Blue.starting_sessions[2].hostname must be a host, got 'Ghost'",
    ),
    "two clients on a host": (
        put(f"{SESSIONS}/2/hostname", "User1"),
        "Agents.Blue.starting_sessions must have at most one client per host",
    ),
    # Red
    "entry session without privilege": (
        put(f"{RED}/username", "vagrant"),
        "Agents.Red.starting_sessions[0].username must be SYSTEM on Windows and root on Linux,",
    ),
    "entry session SYSTEM on Linux": (
        linux_entry_as_system,
        "Agents.Red.starting_sessions[0].username must be SYSTEM on Windows and root on Linux, s",
    ),
    "other type of entry session": (
        put(f"{RED}/type", "SSH"),
        "Agents.Red.starting_sessions[0].type must be RedAbstractSession, got 'SSH'",
    ),
    "several entry sessions": (
        lambda content: content["Agents"]["Red"]["starting_sessions"].append({}),
        "Agents.Red.starting_sessions must have one session, it has 2",
    ),
    "INT of Red misses its entry host": (
        drop("Agents/Red/INT/Hosts/User0"),
        "Agents.Red.INT.Hosts must have red's entry host User0 with Interfaces: All and System",
    ),
    "INT of Red without System info of the entry host": (
        drop("Agents/Red/INT/Hosts/User0/System info"),
        "Agents.Red.INT.Hosts.User0.System info must be All, got nothing",
    ),
    "INT of Red gives System info of another host": (
        put("Agents/Red/INT/Hosts/User1", {**KNOWN}),
        "Agents.Red.INT.Hosts.User1.System info must be absent: User0 is the entry host",
    ),
    "INT of Red with other Interfaces": (
        put("Agents/Red/INT/Hosts/User1", {"Interfaces": "Some"}),
        "Agents.Red.INT.Hosts.User1.Interfaces must be All or IP Address, got 'Some'",
    ),
    "Red without Impact in its actions": (
        lambda content: content["Agents"]["Red"]["actions"].remove("Impact"),
        "Agents.Red.actions must have Sleep, DiscoverRemoteSystems, DiscoverNetworkServices, Exp",
    ),
    "unknown action of Red": (
        put("Agents/Red/actions/1", "Phish"),
        "Agents.Red.actions[1] must be Sleep, DiscoverRemoteSystems,",
    ),
    # Hosts
    "one host": (
        put("Hosts", {"A": {"image": "Gateway"}}),
        "Hosts must have 2 to 64 hosts, it has 1",
    ),
    "65 hosts": (
        lambda content: add_hosts(content, 52),
        "Hosts must have 2 to 64 hosts, it has 65",
    ),
    "unknown image": (
        put("Hosts/User1/image", "toaster"),
        "Hosts.User1.image must be one of Gateway, linux_decoy_host, OP_Server,",
    ),
    "image of another folder": (
        put("Hosts/User1/image", "../images/Gateway"),
        "Hosts.User1.image must be one of Gateway,",
    ),
    "image with a long name": (
        put("Hosts/User1/image", "x" * 5000),
        "Hosts.User1.image must be one of Gateway,",
    ),
    "no image": (drop("Hosts/User1/image"), "Hosts.User1.image must be a text, got nothing"),
    "value outside of the four": (
        put("Hosts/User1/ConfidentialityValue", "Huge"),
        "Hosts.User1.ConfidentialityValue must be None, Low, Medium or High, got 'Huge'",
    ),
    "empty value": (
        put("Hosts/User1/AvailabilityValue", None),
        "Hosts.User1.AvailabilityValue must be None, Low, Medium or High, got None",
    ),
    "further fields of a host": (
        put("Hosts/User1/Processes", []),
        "the fields of Hosts.User1 must be one of image, info, AWS_Info, ConfidentialityValue, Av",
    ),
    "info with Interfaces: Some": (
        put("Hosts/User1/info/User1/Interfaces", "Some"),
        "Hosts.User1.info.User1.Interfaces must be All or IP Address, got 'Some'",
    ),
    "info with System info": (
        put("Hosts/User1/info/User1/System info", "All"),
        "the fields of Hosts.User1.info.User1 must be one of Interfaces, Services; got 'System",
    ),
    "info about another service": (
        put("Hosts/User1/info/User1/Services", ["Mail"]),
        "Hosts.User1.info.User1.Services[0] must be OTService, got 'Mail'",
    ),
    "empty info about a host": (
        put("Hosts/User1/info/User1", {}),
        "Hosts.User1.info.User1 must have Interfaces or Services, got {}",
    ),
    "info about an unknown host": (
        put("Hosts/User1/info/Ghost", {"Interfaces": "All"}),
        "names in Hosts.User1.info must be hosts, got 'Ghost'",
    ),
    "name of two words": (
        put("Hosts/User 9", {"image": "Gateway"}),
        "names in Hosts must be single words of at most 100 characters, got 'User 9'",
    ),
    "long name": (
        put("Subnets", {"x" * 101: {}}),
        "names in Subnets must be single words of at most 100 characters, got 'xxx",
    ),
    "name with a control character": (
        put("Subnets", {"x\x1b[31m": {}}),
        "names in Subnets must be single words of at most 100 characters, got 'x\\x1b[31m'",
    ),
    "name that is a number": (
        put("Hosts", {5: {"image": "Gateway"}}),
        "names in Hosts must be single words of at most 100 characters, got 5",
    ),
    # Subnets
    "17 subnets": (too_many_subnets, "Subnets must have 1 to 16 subnets, it has 17"),
    "subnet too small": (
        lambda content: add_hosts(content, 16),
        "Subnets.User.Size must be larger: it gives 14 addresses for 21 hosts, got 5",
    ),
    "no Size": (drop("Subnets/User/Size"), "Subnets.User.Size must be a whole number, at least 0"),
    "host in no subnet": (
        drop("Subnets/User/Hosts/4"),
        "Subnets must have each host in exactly one place, User4 is in none",
    ),
    "host in two subnets": (
        lambda content: content["Subnets"]["User"]["Hosts"].append("Enterprise0"),
        "Subnets must have each host in exactly one place, Enterprise0 is in 2 places",
    ),
    "unknown host in a subnet": (
        put("Subnets/User/Hosts/4", "Ghost"),
        "Subnets.User.Hosts[4] must be a host, got 'Ghost'",
    ),
    "subnet without hosts": (
        put("Subnets/User/Hosts", []),
        "Subnets.User.Hosts must name at least one host, got []",
    ),
    "NACL all: in: None": (
        put("Subnets/Enterprise/NACLs/all/in", "None"),
        "Subnets.Enterprise.NACLs.all.in must be all, got 'None'",
    ),
    "NACL with port rules": (
        put("Subnets/Enterprise/NACLs/User", {"in": [{"PortRange": 22}]}),
        "Subnets.Enterprise.NACLs.User.in must be all or None, got [{'PortRange': 22}]",
    ),
    # Types
    "list in place of a mapping": (put("Hosts", []), "Hosts must be a mapping, got []"),
    "text in place of a list": (
        put("Agents/Red/starting_sessions", "User0"),
        "Agents.Red.starting_sessions must be a list, got 'User0'",
    ),
    "host that is a number": (put("Hosts/User1", 7), "Hosts.User1 must be a mapping, got 7"),
}


@pytest.mark.parametrize(("change", "sentence"), CASES.values(), ids=CASES.keys())
def test_a_file_outside_of_the_class_is_refused_with_its_field(
    tmp_path: Path, change: Callable[[Content], Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"scenario.yaml: {re.escape(sentence)}") as caught:
        load_changed(tmp_path, change)
    assert "\n" not in str(caught.value)


def test_what_has_no_effect_is_accepted(tmp_path: Path) -> None:
    def change(content: Content) -> None:
        for host in content["Hosts"].values():
            host["AWS_Info"] = ["anything"]
        content["Hosts"]["Defender"]["info"] = None
        red, green = content["Agents"]["Red"], content["Agents"]["Green"]
        red["starting_sessions"][0]["name"] = "Other"
        red["agent_type"] = "Unknown"
        red["INT"]["Hosts"]["User0"]["User info"] = "All"
        del red["reward_calculator_type"]
        green["starting_sessions"][0]["username"] = "someone"
        content["Agents"]["Blue"]["starting_sessions"][0]["username"] = "root"
        content["Subnets"]["User"]["NACLs"]["all"]["out"] = "None"
        content["Subnets"]["User"]["Size"] = 26

    assert load_changed(tmp_path, change) == sample("cage2_rebuilt")


IMAGE_CASES: dict[str, tuple[Callable[[Content], Any], str]] = {
    "no Test_Host": (drop("Test_Host"), "Test_Host must be a mapping, got nothing"),
    "another system": (
        put("Test_Host/System info/OSType", "MACOS"),
        "Test_Host.System info.OSType must be WINDOWS or LINUX, got 'MACOS'",
    ),
    "patches": (
        put("Test_Host/System info/Patches", ["P"]),
        "Test_Host.System info.Patches must be absent, got ['P']",
    ),
    "listening process without account": (
        drop("Test_Host/Processes/0/Username"),
        "Test_Host.Processes[0].Username must be a text, got nothing",
    ),
    "root on Windows": (
        put("Test_Host/Processes/0/Username", "root"),
        "Test_Host.Processes[0].Username must be another account than root on Windows, got 'root'",
    ),
    "mail without version": (
        drop("Test_Host/Processes/6/Process Version"),
        "Test_Host.Processes[6].Process Version must be haraka 2.7.0, got nothing",
    ),
    "guessable SYSTEM": (
        put("Test_Host/User Info/0/Bruteforceable", True),
        "Test_Host.User Info[0].Username must be another account than root and SYSTEM if it can",
    ),
    "another service": (
        put("Test_Host/Services", {"Mail": {"active": True}}),
        "the fields of Test_Host.Services must be one of OTService; got 'Mail'",
    ),
    "service that is not active": (
        put("Test_Host/Services", {"OTService": {"active": False, "PID": 1}}),
        "Test_Host.Services.OTService.active must be true, got False",
    ),
    "service without process": (
        put("Test_Host/Services", {"OTService": {"active": True, "PID": 500}}),
        "Test_Host.Services.OTService.PID must be the PID of a process named OTService, got 500",
    ),
    "port of text": (
        put("Test_Host/Processes/0/Connections/0/local_port", "ftp"),
        "Test_Host.Processes[0].Connections[0].local_port must be a port number, got 'ftp'",
    ),
}


@pytest.mark.parametrize(("change", "sentence"), IMAGE_CASES.values(), ids=IMAGE_CASES.keys())
def test_an_image_outside_of_the_class_is_refused_with_its_field(
    tmp_path: Path, change: Callable[[Content], Any], sentence: str
) -> None:
    image = yaml.safe_load((FOLDER / "images" / "own_win_full.yaml").read_text(encoding="utf-8"))
    change(image)
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(image), encoding="utf-8")
    content = content_of()
    content["Hosts"]["User1"]["image"] = "own"
    path = write(tmp_path, content)
    with pytest.raises(ValueError, match=f"own.yaml: {re.escape(sentence)}"):
        Scenario.load(path, images=tmp_path)


@pytest.mark.parametrize("family", ["Windows", "windows", "WINDOWS"])
def test_the_system_of_an_image_may_be_in_any_case(tmp_path: Path, family: str) -> None:
    image = yaml.safe_load((FOLDER / "images" / "own_win_full.yaml").read_text(encoding="utf-8"))
    put("Test_Host/System info/OSType", family)(image)
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(image), encoding="utf-8")
    content = content_of()
    content["Hosts"]["User1"]["image"] = "own"
    scenario = Scenario.load(write(tmp_path, content), images=tmp_path)
    assert scenario.windows[scenario.host_index("User1")]


def test_images_are_read_from_the_folder_that_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, content_of("own_images"))
    with pytest.raises(ValueError, match=r"Hosts.Enterprise0.image must be one of .*own_smb_linux"):
        Scenario.load(path)
    assert Scenario.load(path, images=FOLDER / "images") == sample("own_images")


def close_enterprise(content: Content) -> None:
    content["Subnets"]["Enterprise"]["NACLs"]["User"] = {"in": "None"}


def two_servers(content: Content) -> None:
    content["Subnets"]["User"]["Hosts"] += ["Enterprise2", "Defender"]
    content["Subnets"]["Enterprise"]["Hosts"] = ["Enterprise0", "Enterprise1"]


def alone(content: Content) -> None:
    content["Subnets"]["User"]["Hosts"] = ["User0"]
    content["Subnets"]["Operational"]["Hosts"] += ["User1", "User2", "User3", "User4"]


def entry(name: str) -> Callable[[Content], None]:
    def change(content: Content) -> None:
        image = content["Hosts"][name]["image"]
        account = "SYSTEM" if image in ("Internal", "windows_user_host1") else "root"
        red = content["Agents"]["Red"]
        red["starting_sessions"][0] |= {"hostname": name, "username": account}
        red["INT"]["Hosts"] = {name: {**KNOWN}}

    return change


def silent_enterprise1(content: Content) -> None:
    content["Hosts"]["Enterprise1"]["image"] = "own_silent"


def silent_enterprise2(content: Content) -> None:
    content["Hosts"]["Enterprise2"]["image"] = "own_silent"


def takeable_scenario_without_target(content: Content) -> None:
    content["Hosts"]["Defender"]["image"] = "Gateway"
    del content["Hosts"]["Enterprise2"]["info"]["Op_Server0"]


RED_CASES: dict[str, tuple[str, Callable[[Content], Any], str]] = {
    "entry host is not User0": (
        "b_line",
        entry("User3"),
        "B_lineAgent needs the host User0 in Agents.Red.INT.Hosts with",
    ),
    "alone in its subnet": (
        "b_line",
        alone,
        "B_lineAgent needs another host in the subnet of User0",
    ),
    "no link to an Enterprise host": (
        "b_line",
        drop("Hosts/User1/info/Enterprise1"),
        "B_lineAgent needs a host with Enterprise in its name in Hosts.User1.info",
    ),
    "link without Interfaces": (
        "b_line",
        put("Hosts/User1/info/Enterprise1", {"Services": ["OTService"]}),
        "B_lineAgent needs Interfaces of Enterprise1 in Hosts.User1.info",
    ),
    "Enterprise subnet gated": (
        "b_line",
        close_enterprise,
        "B_lineAgent must be able to scan Enterprise1 from the subnet",
    ),
    "server without port": (
        "b_line",
        silent_enterprise1,
        "B_lineAgent needs an open port on Enterprise1",
    ),
    "server that does not reveal its subnet": (
        "b_line",
        put("Hosts/Enterprise1/info/Enterprise1/Interfaces", "IP Address"),
        "B_lineAgent needs Enterprise1 with Interfaces: All in Hosts.Enterprise1.info",
    ),
    "two hosts in the Enterprise subnet": (
        "b_line",
        two_servers,
        "B_lineAgent needs at least three hosts in the subnet of Enterprise1, Subnets.Enterprise",
    ),
    "third server without port": (
        "b_line",
        silent_enterprise2,
        "B_lineAgent needs an open port on Enterprise2",
    ),
    "no link to Op_Server0": (
        "b_line",
        drop("Hosts/Enterprise2/info/Op_Server0"),
        "B_lineAgent needs Op_Server0 with Interfaces in Hosts.Enterprise2.info",
    ),
    "entry host with Op in its name": (
        "meander",
        entry("Op_Host0"),
        "RedMeanderAgent needs an entry host without Op or Ent in",
    ),
    "every known host can be taken": (
        "meander",
        takeable_scenario_without_target,
        "RedMeanderAgent needs to learn of Op_Server0 or of a host that it can never take",
    ),
}


@pytest.mark.parametrize(("red", "change", "sentence"), RED_CASES.values(), ids=RED_CASES.keys())
def test_a_red_that_would_raise_is_refused_with_its_reason(
    tmp_path: Path, red: str, change: Callable[[Content], Any], sentence: str
) -> None:
    content = content_of()
    change(content)
    scenario = Scenario.load(write(tmp_path, content), images=FOLDER / "images")
    with pytest.raises(ValueError, match="the scenario scenario cannot be played: ") as caught:
        scenario.check_red(red)
    assert sentence in str(caught.value)
    assert scenario.red_refusal("sleep") is scenario.red_refusal("given") is None


def test_an_unknown_red_is_refused() -> None:
    with pytest.raises(ValueError, match=r"red must be one of B_lineAgent, .*'purple'"):
        sample("tiny").red_refusal("purple")


DAMAGED = {
    "no YAML": (b"a: [", "must be a YAML file: .*line 2"),
    "bytes": (b"\xff\xfe\xfa\x00\x01", "must be a YAML file: "),
    "binary": (b"\x00\x01\x02", "must be a YAML file: "),
    "empty": (b"", "must hold one YAML document, it holds 0"),
    "two documents": (b"a: 1\n---\nb: 2\n", "must hold one YAML document, it holds 2"),
    "brackets": (b"[" * 100_000, "must be nested at most 20 deep"),
    "dashes": (b"- " * 100_000, "must be nested at most 20 deep"),
    "question marks": (b"? " * 100_000, "must be nested at most 20 deep"),
    "tag": (b"a: !!python/object:os.system x", "must not have tags, it has .*line 1"),
    "merge key": (b"a: &a {x: 1}\nb: {<<: *a}", r"must not have merge keys \(<<\) .*line 2"),
    "key that is a list": (b"? [1]\n: 2", "must have keys that are words"),
    "alias without anchor": (b"a: *b", "must have an anchor before the alias"),
    "recursive alias": (b"a: &a [*a]", "must have an anchor before the alias"),
    "text": (b"hello", "the file must be a mapping, got 'hello'"),
    "date": (b"Agents: 2020-01-01", "Agents must be a mapping, got 2020-01-01"),
    "digits": (b"Agents: " + b"9" * 9000, "Agents must be a mapping, got 9999"),
    "sexagesimal": (b"Agents: 1" + b":59" * 9000, "Agents must be a mapping, got 1:59"),
}


@pytest.mark.parametrize(("content", "sentence"), DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_is_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"scenario.yaml:? {sentence}") as caught:
        Scenario.load(path)
    assert "\n" not in str(caught.value)


def test_aliases_cannot_multiply_a_file(tmp_path: Path) -> None:
    levels = "".join(f"k{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 9)}]\n" for i in range(1, 12))
    path = tmp_path / "scenario.yaml"
    path.write_text(f"k0: &k0 x\n{levels}", encoding="utf-8")
    with pytest.raises(ValueError, match="must hold at most 100,000 values"):
        Scenario.load(path)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_bytes(b" " * 1_000_001)
    with pytest.raises(ValueError, match="must have at most 1,000,000 bytes"):
        Scenario.load(path)
