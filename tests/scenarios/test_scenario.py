import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cagepool import _core
from cagepool.scenarios import CAGE2, Layout, resolve_scenarios
from cagepool.scenarios.vocabulary import DECOYS, RED_KINDS
from tests.scenarios.files import SAMPLES, TABLES, sample

# Names of our tables where they differ from those of the recorded ones.
OURS = {
    "vuln": "vulnerabilities",
    "conf_tenths": "confidentiality_tenths",
    "avail_tenths": "availability_tenths",
    "reveals_net": "reveals_nets",
    "mode": "modes",
    "init_known_ip": "known_ip",
    "init_known_net": "known_nets",
    "blue_actions": "action_kinds",
    "blue_agent": "agents",
    "order": "order_of_play",
}
REDS = {"B_line": "B_lineAgent", "Meander": "RedMeanderAgent", "Sleep": "SleepAgent"}


def as_json(value: object) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_gives_the_recorded_tables(name: str) -> None:
    scenario = sample(name)
    expected = {**TABLES[name]}
    red = expected.pop("red")
    assert len(scenario.actions) == expected.pop("n_actions")
    assert 4 * len(scenario.hosts) == expected.pop("n_obs")
    assert {key: as_json(getattr(scenario, OURS.get(key, key))) for key in expected} == expected
    accepted = {red: scenario.red_refusal(REDS[red]) is None for red in REDS}
    assert accepted == {red: sentence == "accepted" for red, sentence in red.items()}


def test_the_built_in_scenario_is_that_of_its_file() -> None:
    assert sample("cage2_rebuilt") == CAGE2
    types = {host: host.rstrip("0123456789").lower() for host in CAGE2.hosts if host != "User0"}
    assert CAGE2.roles == tuple(types.get(host) for host in CAGE2.hosts)


def test_the_actions_are_those_of_the_compiled_game() -> None:
    kinds = {kind.name.capitalize(): kind for kind in _core.BlueKind}
    for index, action in enumerate(CAGE2.actions):
        verb, _, host = action.partition(" ")
        kind, number, decoy, _ = _core.blue_action(index)
        decoy_name = f"Decoy{DECOYS[decoy]}"
        assert verb == decoy_name if kind == _core.BlueKind.DECOY else kinds[verb] == kind
        assert not host or CAGE2.hosts[number] == host
    assert len(CAGE2.actions) == _core.ACTION_COUNT
    assert len(CAGE2.red_actions) == _core.RED_ACTION_COUNT
    for index, action in enumerate(CAGE2.red_actions):
        verb, _, place = action.partition(" ")
        red_kind, target = _core.red_action(index)
        assert verb == RED_KINDS[red_kind]
        targets = CAGE2.subnets if red_kind == _core.RedKind.SWEEP else CAGE2.hosts
        assert place == (targets[target] if target >= 0 else "")


def test_the_hash_follows_what_decides_the_game() -> None:
    hashes = [sample(name).hash for name in SAMPLES]
    assert len({*hashes}) == len(hashes)
    assert CAGE2.hash == "3ec7d29dea0c3ddcdd8cf11ac2b26d3315093fa8927c88fdb4c5eb6c0b1f8769"


def test_a_scenario_survives_pickling() -> None:
    scenario = sample("wide64").with_roles({"Defender": "user"})
    again = pickle.loads(pickle.dumps(scenario))
    assert again == scenario
    assert hash(again) == hash(scenario)
    assert (again.name, again.actions) == (scenario.name, scenario.actions)


def test_roles_make_scenarios_differ_but_not_their_games() -> None:
    other = CAGE2.with_roles({"User0": "user", "Defender": None})
    assert other != CAGE2
    assert other.hash == CAGE2.hash
    assert other.roles[other.host_index("User0")] == "user"
    assert other.roles[other.host_index("Defender")] is None


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"a host must be one of 13 names, .*User4.*'User5'"):
        CAGE2.host_index("User5")
    with pytest.raises(ValueError, match=r"an action must be .*Restore User4.*'Restore User5'"):
        CAGE2.action_index("Restore User5")
    with pytest.raises(ValueError, match=r"a role must be one of defender, .*'boss'"):
        CAGE2.with_roles({"User1": "boss"})


def test_the_layout_of_one_scenario_is_its_own() -> None:
    scenario = sample("shuffled_layout")
    layout = Layout.of([scenario])
    assert layout.actions == scenario.actions
    assert scenario.slots(layout).tolist() == [*range(len(scenario.hosts))]


def test_a_host_keeps_its_slot_in_all_networks_of_a_layout() -> None:
    scenarios = [sample(name) for name in ("wide40", "shuffled_layout", "cage1_misinform")]
    layout = Layout.of(scenarios)
    assert layout.slots.index("User10") == layout.slots.index("User9") + 1
    assert layout.kinds == (*CAGE2.action_kinds, "Misinform")
    for scenario in scenarios:
        slots = scenario.slots(layout)
        assert [layout.slots[slot] for slot in slots] == [*scenario.hosts]


def test_slots_are_positions_if_names_are_too_many() -> None:
    scenarios = [sample("wide64"), sample("renamed_twin")]
    layout = Layout.of(scenarios)
    assert layout.by_position
    assert len(layout.slots) == 64
    assert np.array_equal(scenarios[1].slots(layout), np.arange(13))


def test_a_layout_without_a_slot_for_a_host_is_refused() -> None:
    with pytest.raises(ValueError, match="got none for User5 of the scenario users_plus2"):
        sample("users_plus2").slots(Layout.of([CAGE2]))


def test_scenarios_are_given_in_many_forms() -> None:
    path = Path(__file__).parents[1] / "golden" / "scenarios"
    assert resolve_scenarios("cage2") == resolve_scenarios(CAGE2) == (CAGE2,)
    assert resolve_scenarios(path / "tiny.yaml") == (sample("tiny"),)
    assert resolve_scenarios(str(path)) == tuple(sample(name) for name in SAMPLES)
    assert resolve_scenarios([CAGE2, path / "flat.yaml"]) == (CAGE2, sample("flat"))
    assert resolve_scenarios(lambda seed: CAGE2.with_name(str(seed)))[999].name == "999"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (7, "scenario must be a Scenario, .*; got 7"),
        ([], r"scenario must give at least one scenario, got \[\]"),
        ("missing.yaml", "missing.yaml must be a file that can be read"),
        ("cage2/user:train", r"a suite must be cage2, cage1, or .*did you mean cage2/users:train"),
        (lambda seed: seed, "a generator of scenarios must return a Scenario, got 0"),
    ],
)
def test_what_is_no_scenario_is_refused(value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        resolve_scenarios(value)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a folder of scenarios must have files \*.yaml"):
        resolve_scenarios(tmp_path)


def test_importing_the_package_does_not_import_yaml() -> None:
    program = "import sys, cagepool, cagepool.scenarios; print('yaml' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert run.stdout.strip() == "False"
