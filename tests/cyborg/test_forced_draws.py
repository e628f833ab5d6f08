"""CybORG follows native games step by step: same red actions, random draws forced to ours.

The whole dictionary of the true state is compared. The tests need CybORG, of either edition.
"""

import random
from enum import Enum
from importlib import import_module
from inspect import getfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cagepool import _core
from cagepool.cyborg.dict_state import enumerations, true_state_dict
from cagepool.sim import Batch
from cagepool.sim.names import EXPLOITS, HOSTS, RED_KINDS, SUBNETS, action_index
from tests.cyborg.dictionaries import summarize
from tests.sim.games import start_batch, trace_rows

pytestmark = pytest.mark.parity

STEPS = 100
CONCRETE = "CybORG.Shared.Actions.ConcreteActions"
SUCCESS = {-1: "UNKNOWN", 0: "FALSE", 1: "TRUE"}
ENUMERATIONS: list[type[Enum]] = [
    value
    for value in vars(enumerations).values()
    if isinstance(value, type) and issubclass(value, Enum) and list(value)
]


class ForcedCybORG:
    """CybORG with given red actions and forced detections."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = import_module("CybORG")
        self.next_red: object = None
        forced = self

        class Scripted:
            """Red agent that plays the given action."""

            def get_action(self, *_: object) -> object:
                return forced.next_red

            def nothing(self, *_: object, **__: object) -> None: ...

            set_initial_values = train = end_episode = nothing

        self.detected = True
        exploits = import_module(f"{CONCRETE}.ExploitAction")
        monkeypatch.setattr(exploits, "random", lambda: 0.0 if self.detected else 0.99)
        path = Path(getfile(module.CybORG)).parent / "Shared" / "Scenarios" / "Scenario2.yaml"
        self.cyborg = module.CybORG(str(path), "sim", agents={"Red": Scripted})
        wrappers = import_module("CybORG.Agents.Wrappers")
        self.env = wrappers.ChallengeWrapper("Blue", self.cyborg)
        self.env.reset()

    def step(self, action: int, moves: np.void) -> tuple[Any, float]:
        self.detected = bool(moves["detected"])
        self.next_red = self.red_action(moves)
        observation, reward, _, _ = self.env.step(action)
        return observation, reward

    def red_action(self, moves: np.void) -> object:
        kind, target = int(moves["red_kind"]), int(moves["red_target"])
        abstract = import_module("CybORG.Shared.Actions.AbstractActions")
        if kind == _core.RedKind.SLEEP:
            return import_module("CybORG.Shared.Actions").Sleep()
        make = getattr(abstract, RED_KINDS[kind])
        if kind == _core.RedKind.SWEEP:
            subnets = self.cyborg.environment_controller.state.subnet_name_to_cidr
            return make(session=0, agent="Red", subnet=subnets[SUBNETS[target]])
        if kind in (_core.RedKind.ESCALATE, _core.RedKind.IMPACT):
            return make(session=0, agent="Red", hostname=HOSTS[target])
        address = self.cyborg.get_ip_map()[HOSTS[target]]
        if kind == _core.RedKind.SCAN:
            return make(session=0, agent="Red", ip_address=address)
        return make(session=0, agent="Red", ip_address=address, priority=self.exploit(moves))

    def exploit(self, moves: np.void) -> object:
        name = EXPLOITS[moves["exploit"]]
        return getattr(import_module(f"{CONCRETE}.{name}"), name)

    def true_state(self) -> dict[str, Any]:
        return dict(self.cyborg.get_agent_state("True"))

    def success(self, agent: str) -> str:
        return str(self.cyborg.environment_controller.observation[agent].success)


@pytest.fixture
def edition(monkeypatch: pytest.MonkeyPatch) -> str:
    """Edition of CybORG, by the version of a restored mail server."""
    cyborg = ForcedCybORG(monkeypatch)
    cyborg.step(action_index("Restore User3"), start_batch().moves[0])
    (mail,) = (
        entry
        for entry in cyborg.true_state()["User3"]["Processes"]
        if entry["Process Name"] == "smtp"
    )
    return "leaderboard" if mail["Process Version"].name == "UNKNOWN" else "2.1"


def draw_actions(batch: Batch, rng: np.random.Generator) -> tuple[Any, Any]:
    """A random blue action, and a red action that CybORG allows if red is `given`."""
    action = rng.integers(0, _core.ACTION_COUNT, 1)
    if batch.config.red != "given":
        return action, None
    row = trace_rows(batch)[0]
    held = row["s_user_seen"] + row["s_user_unseen"]
    known = {
        _core.RedKind.SLEEP: np.ones(13, bool),
        _core.RedKind.SWEEP: row["s_known_net"],
        _core.RedKind.SCAN: row["s_known_ip"],
        _core.RedKind.EXPLOIT: row["s_known_ip"] & (row["s_red_ports"] > 0),
        # Which of several sessions is escalated cannot be forced.
        _core.RedKind.ESCALATE: row["s_known_host"] & ((row["s_priv"] > 0) | (held < 2)),
        _core.RedKind.IMPACT: row["s_known_host"],
    }
    allowed = [
        red
        for red, (kind, target) in enumerate(map(_core.red_action, range(_core.RED_ACTION_COUNT)))
        if known[kind][target]
    ]
    return action, rng.choice(allowed, 1)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("red", ["b_line", "meander", "given"])
def test_every_step_is_that_of_cyborg(
    red: str, seed: int, edition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random.seed(seed)
    cyborg = ForcedCybORG(monkeypatch)
    batch = start_batch(1, seed, red=red, edition=edition, max_steps=STEPS + 1)
    rng = np.random.default_rng(seed)
    assert summarize(true_state_dict(batch, 0)) == summarize(cyborg.true_state())
    for _ in range(STEPS):
        action, red_action = draw_actions(batch, rng)
        batch.step(action, red_action)
        moves = batch.moves[0]
        observation, reward = cyborg.step(int(action[0]), moves)
        np.testing.assert_array_equal(batch.observations[0], observation)
        assert batch.rewards[0] == pytest.approx(reward, abs=1e-9)  # theirs is a sum of floats
        assert cyborg.success("Red") == SUCCESS[int(moves["red_success"])]
        assert summarize(true_state_dict(batch, 0)) == summarize(cyborg.true_state())


@pytest.mark.parametrize("ours", ENUMERATIONS, ids=lambda ours: ours.__name__)
def test_an_enumeration_has_the_numbers_of_cyborg(ours: type[Enum]) -> None:
    theirs = getattr(import_module("CybORG.Shared.Enums"), ours.__name__)
    for member in ours:
        counterpart = theirs[member.name]
        assert (member.value, str(member)) == (counterpart.value, str(counterpart))
