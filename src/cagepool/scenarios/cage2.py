"""The scenario of CAGE Challenge 2."""

from cagepool.scenarios.images import IMAGES
from cagepool.scenarios.scenario import Scenario
from cagepool.scenarios.tables import ADDRESS, ALL, Description, Host, Link, StartingSession, Subnet
from cagepool.scenarios.vocabulary import CAGE2_KINDS

_GATE = {"User": "None", "all": "all"}


def _host(
    name: str, image: str, link: str = "", value: str = "Low", availability: str = ""
) -> Host:
    """A host that reveals itself, and by its link the address of another one."""
    links = {name: Link(ALL, service=image == "OP_Server")}
    if link:
        links[link] = Link(ADDRESS)
    return Host(name, IMAGES[image], links, value, availability or value)


_HOSTS = (
    Host("Defender", IMAGES["Velociraptor_Server"]),
    _host("Enterprise0", "Gateway", value="Medium"),
    _host("Enterprise1", "Internal", value="Medium"),
    _host("Enterprise2", "Internal", "Op_Server0", value="Medium"),
    _host("Op_Host0", "Gateway"),
    _host("Op_Host1", "Gateway"),
    _host("Op_Host2", "Gateway"),
    _host("Op_Server0", "OP_Server", value="Medium", availability="High"),
    _host("User0", "windows_user_host1", value="None"),
    _host("User1", "windows_user_host1", "Enterprise1", availability="None"),
    _host("User2", "windows_user_host2", "Enterprise1", availability="None"),
    _host("User3", "linux_user_host1", "Enterprise0", availability="None"),
    _host("User4", "linux_user_host2", "Enterprise0", availability="None"),
)
_USERS = ("User0", "User1", "User2", "User3", "User4")
_ENTERPRISE = ("Enterprise0", "Enterprise1", "Enterprise2")
_OP_HOSTS = ("Op_Host0", "Op_Host1", "Op_Host2")
_CLIENTS = (*_USERS, *_ENTERPRISE, "Defender", "Op_Server0", *_OP_HOSTS)  # in order of numbers


def _blue_session(host: str, type_: str = "VelociraptorClient") -> StartingSession:
    account = "SYSTEM" if host in ("Enterprise1", "Enterprise2") else "ubuntu"
    return StartingSession("Blue", host, type_, account)


_SESSIONS = (
    _blue_session("Defender", "VelociraptorServer"),
    *(_blue_session(host) for host in _CLIENTS),
    *(
        StartingSession("Green", host, "green_session", "GreenAgent")
        for host in (*_USERS, *_OP_HOSTS)
    ),
    StartingSession("Red", "User0", "RedAbstractSession", "SYSTEM"),
)
_NAMES = frozenset(host.name for host in _HOSTS)
DESCRIPTION = Description(
    hosts=_HOSTS,
    subnets={
        "Enterprise": Subnet((*_ENTERPRISE, "Defender")),
        "Operational": Subnet(("Op_Server0", *_OP_HOSTS), _GATE),
        "User": Subnet(_USERS),
    },
    entry="User0",
    known={"User0": ALL},
    action_kinds=CAGE2_KINDS,
    agents=_NAMES,
    monitored=_NAMES,
    order_of_play=("Blue", "Green", "Red"),
    scannable=_NAMES,
    sessions=_SESSIONS,
)
CAGE2 = Scenario.from_description(DESCRIPTION, "cage2")
"""The scenario of the challenge, 13 hosts."""
