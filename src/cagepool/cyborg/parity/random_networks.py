"""Random networks for the comparison with CybORG, beyond the shape of CAGE-2's."""

from dataclasses import replace
from random import Random
from typing import Any

from cagepool.scenarios import Scenario
from cagepool.scenarios.tables import TENTHS, usual_sessions
from cagepool.scenarios.vocabulary import HOST_KINDS, PLAIN_KINDS

_BASIC_KINDS = (*PLAIN_KINDS, "Analyse", "Remove", "Restore")
_ORDERS = (
    ("Blue", "Green", "Red"),
    ("Green", "Red", "Blue"),
    ("Green", "Blue", "Red"),
    ("Red", "Blue", "Green"),
    ("Red", "Blue"),
)


def random_network(seed: int) -> Scenario:
    """A random network that CybORG can play: half of them of the usual shape, half of any.

    Those of any shape also differ from CAGE-2's in images, subnets, entry host, order of play,
    values, blue's agents and actions. Not every red agent can play them.
    """
    if seed % 2 == 0:
        return Scenario.generate(seed)
    rng = Random(f"network {seed}")
    made = Scenario.generate(seed, **_options(rng))
    varied = replace(made, **_variations(made, rng))
    return replace(varied, sessions=usual_sessions(varied), name=f"random/{seed}")


def _options(rng: Random) -> dict[str, Any]:
    reds = rng.choice([("B_lineAgent", "RedMeanderAgent"), ("RedMeanderAgent",), ()])
    return {
        "users": (2, 9),
        "enterprise": (1, 6),
        "op_hosts": (0, 4),
        "subnets": rng.choice(["cage2", (1, 8)]),
        "images": rng.choice(["kinds", "any"]),
        "entry": rng.choice(["User0", "random"]) if "B_lineAgent" not in reds else "User0",
        "reds": reds,
    }


def _variations(scenario: Scenario, rng: Random) -> dict[str, Any]:
    hosts = range(len(scenario.hosts))
    agents = [rng.random() < 0.9 for _ in hosts]
    server = rng.choice(hosts)
    agents[server] = True
    monitored = [
        is_agent and (i != server or rng.random() < 0.7) for i, is_agent in enumerate(agents)
    ]
    tenths = [*TENTHS.values()]
    order = rng.choice(_ORDERS)
    kinds = [
        *_BASIC_KINDS,
        *rng.sample([kind for kind in HOST_KINDS if kind not in _BASIC_KINDS], rng.randrange(10)),
    ]
    rng.shuffle(kinds)
    return {
        "agents": tuple(agents),
        "monitored": tuple(monitored),
        "order_of_play": order,
        "green_hosts": scenario.green_hosts
        if "Green" in order
        else (None,) * len(scenario.green_hosts),
        "action_kinds": tuple(kinds),
        "confidentiality_tenths": tuple(rng.choice(tenths) for _ in hosts),
        "availability_tenths": tuple(rng.choice(tenths) for _ in hosts),
    }
