"""CybORG plays the files that `Scenario.save` writes."""

from pathlib import Path

import pytest

from cagepool import Scenario
from cagepool.cyborg import locate
from cagepool.scenarios import resolve_scenarios
from tests.scenarios.files import SAMPLES, sample

pytestmark = pytest.mark.parity

SAVED = [name for name in SAMPLES if name != "own_images"]  # CybORG has no images of our own
GENERATED = {
    "layout": Scenario.generate(0, subnets=(1, 8), images="any"),
    "entry": Scenario.generate(1, subnets=(1, 8), entry="random", reds=["meander"]),
}


@pytest.mark.parametrize("red", ["B_lineAgent", "RedMeanderAgent"])
@pytest.mark.parametrize("name", [*SAVED, *GENERATED])
def test_cyborg_plays_a_saved_file(name: str, red: str, tmp_path: Path) -> None:
    scenario = GENERATED.get(name) or sample(name)
    locate.load()
    path = tmp_path / "scenario.yaml"
    scenario.save(path)
    agents = {"Green": locate.import_object("Agents.GreenAgent")}
    is_accepted = scenario.red_refusal(red) is None
    agents["Red"] = locate.import_object(f"Agents.{red if is_accepted else 'SleepAgent'}")
    cyborg = locate.import_object("CybORG.CybORG")(str(path), "sim", agents=agents)
    env = locate.import_object("Agents.Wrappers.ChallengeWrapper")("Blue", cyborg)
    assert len(env.reset()) == 4 * len(scenario.hosts)
    for step in range(10):
        env.step(37 * step % len(scenario.actions))
    table = env.env.env.env.get_action_space("Blue")
    assert list(table["hostname"]) == [*scenario.hosts]


@pytest.mark.parametrize(("file", "name"), [("Scenario2", "cage2"), ("Scenario1b", "cage1")])
def test_files_of_cyborg_are_the_built_in_scenarios(file: str, name: str) -> None:
    folder = locate.package_folder(locate.load()) / "Shared" / "Scenarios"
    assert resolve_scenarios(folder / f"{file}.yaml") == resolve_scenarios(name)
