"""Policies that reach rare states of the game: blues, and a red that is played from outside."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeAlias

import numpy as np

from cagepool.scenarios import Scenario
from cagepool.scenarios.tables import TENTHS, usual_sessions
from cagepool.scenarios.vocabulary import HOST_KINDS, PLAIN_KINDS

FuzzPolicy: TypeAlias = Callable[[int], int]
"""Chooses the next action, given the host of red's last action, or -1."""
RedPolicy: TypeAlias = Callable[[Any], int]
"""Chooses red's next action, given a trace row with red's knowledge."""

_PLAIN_KINDS = ("Sleep", "Monitor")
_B_LINE_STEPS = 15  # that B_line needs to reach Op_Server0 without interference


def _host_kinds(scenario: Scenario) -> list[str]:
    return [kind for kind in scenario.action_kinds if kind not in _PLAIN_KINDS]


def _decoy_kinds(scenario: Scenario) -> list[str]:
    return [kind for kind in scenario.action_kinds if kind.startswith(("Decoy", "Misinform"))]


def _action_on(scenario: Scenario, kinds: Sequence[str], host: int, rng: Random) -> int:
    return scenario.action_index(f"{rng.choice(kinds)} {scenario.hosts[host]}")


def sleep(_rng: Random, scenario: Scenario) -> FuzzPolicy:
    """Do nothing; without Sleep in blue's list, play the first action."""
    idle = scenario.action_index("Sleep") if "Sleep" in scenario.action_kinds else 0
    return lambda _target: idle


def random(rng: Random, scenario: Scenario) -> FuzzPolicy:
    """Draw from all actions."""
    count = len(scenario.actions)
    return lambda _target: rng.randrange(count)


def chase(rng: Random, scenario: Scenario) -> FuzzPolicy:
    """Act on red's last target half of the time, else draw from all actions."""
    drawing, kinds = random(rng, scenario), _host_kinds(scenario)

    def act(target: int) -> int:
        if target < 0 or not kinds or rng.random() < 0.5:
            return drawing(target)
        return _action_on(scenario, kinds, target, rng)

    return act


def patient(rng: Random, scenario: Scenario) -> FuzzPolicy:
    """Sleep until red has got far, then chase in 30 % of the steps."""
    quiet_steps = rng.randrange(_B_LINE_STEPS, 3 * _B_LINE_STEPS)
    sleeping, chasing = sleep(rng, scenario), chase(rng, scenario)
    steps = iter(range(1_000_000))

    def act(target: int) -> int:
        is_active = next(steps) >= quiet_steps and rng.random() < 0.3
        return chasing(target) if is_active else sleeping(target)

    return act


def decoys(rng: Random, scenario: Scenario) -> FuzzPolicy:
    """Place decoys, half of them on red's last target, and restore that target now and then."""
    kinds = _decoy_kinds(scenario)
    if not kinds:
        return chase(rng, scenario)

    def act(target: int) -> int:
        if target >= 0 and "Restore" in scenario.action_kinds and rng.random() < 0.2:
            return _action_on(scenario, ["Restore"], target, rng)
        on_target = target >= 0 and rng.random() < 0.5
        host = target if on_target else rng.randrange(len(scenario.hosts))
        return _action_on(scenario, kinds, host, rng)

    return act


def random_red(rng: Random, scenario: Scenario, names: Sequence[str]) -> RedPolicy:
    """Draw mostly from actions on what red knows, and sometimes from all actions.

    Such a red opens several sessions per host and tries actions that CybORG finds invalid, which
    its own red agents never do.
    """
    numbers = {name: number for number, name in enumerate(names)}

    def act(knowledge: Any) -> int:
        if rng.random() < 0.1:
            return rng.randrange(len(names))
        known = _known_targets(knowledge, scenario)
        verbs = [verb for verb, targets in known.items() if targets]
        verb = rng.choices(verbs, [_VERB_WEIGHTS[verb] for verb in verbs])[0]
        return numbers[f"{verb} {rng.choice(known[verb])}"]

    return act


_VERB_WEIGHTS = {
    "DiscoverRemoteSystems": 2,
    "DiscoverNetworkServices": 4,
    "ExploitRemoteService": 8,
    "PrivilegeEscalate": 3,
    "Impact": 1,
}


def _known_targets(knowledge: Any, scenario: Scenario) -> dict[str, list[str]]:
    """Targets that red knows, by the verb of the action; of Impact all hosts with OTService."""

    def hosts(field: str) -> list[str]:
        return [scenario.hosts[host] for host in np.flatnonzero(knowledge[field])]

    return {
        "DiscoverRemoteSystems": [
            scenario.subnets[subnet] for subnet in np.flatnonzero(knowledge["s_known_net"])
        ],
        "DiscoverNetworkServices": hosts("s_known_ip"),
        "ExploitRemoteService": hosts("s_red_ports"),
        "PrivilegeEscalate": hosts("s_known_host"),
        "Impact": [host for host, is_ot in zip(scenario.hosts, scenario.ot, strict=True) if is_ot],
    }


FUZZ_POLICIES: dict[str, Callable[[Random, Scenario], FuzzPolicy]] = {
    "sleep": sleep,
    "random": random,
    "chase": chase,
    "patient": patient,
    "decoys": decoys,
}


_BASIC_KINDS = (*PLAIN_KINDS, "Analyse", "Remove", "Restore")
_ORDERS = (
    ("Blue", "Green", "Red"),
    ("Green", "Red", "Blue"),
    ("Green", "Blue", "Red"),
    ("Red", "Blue", "Green"),
    ("Red", "Blue"),
)


def random_scenario(seed: int) -> Scenario:
    """A random scenario that CybORG can play: half of them of the usual shape, half of any.

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
