import pytest

from cagepool.scenarios import CAGE2, Scenario, resolve_scenarios, suites
from tests.scenarios.files import sample


@pytest.mark.parametrize("name", suites.SUITES)
def test_a_suite_has_its_published_scenarios(name: str) -> None:
    # The SHA-256 is compared when the members are made.
    train, test = (resolve_scenarios(f"{name}:{split}") for split in suites.SPLITS)
    hashes = {scenario.hash for scenario in (*train, *test)}
    assert (len(train), len(test)) == (1000, 100)
    assert len(hashes) == 1100
    assert CAGE2.hash not in hashes
    assert all(scenario.red_refusal("meander") is None for scenario in test)
    assert test[17].name == f"{name}:test/17"


def test_a_version_and_a_member_can_be_named() -> None:
    assert resolve_scenarios("cage2/users@1:test") is suites.suite_scenarios("cage2/users:test")
    (member,) = resolve_scenarios("cage2/users:test/17")
    assert member == resolve_scenarios("cage2/users:test")[17]
    with pytest.raises(ValueError, match="the version of the suite cage2/users must be 1, got"):
        resolve_scenarios("cage2/users@2:test")
    with pytest.raises(ValueError, match="a member of a suite must be below 100, got"):
        resolve_scenarios("cage2/users:test/100")
    with pytest.raises(ValueError, match=r"a suite must be .*or :train or :test of cage2/users"):
        resolve_scenarios("cage2/users")


def test_cage_1_is_the_scenario_with_misinform() -> None:
    assert resolve_scenarios("cage1") == (sample("cage1_misinform"),)


def test_the_table_says_which_reds_can_play() -> None:
    rows = {row["suite"]: row for row in suites.suite_table()}
    assert len(rows) == 2 * len(suites.SUITES)
    entry = rows["cage2/entry@1:test"]
    members = resolve_scenarios("cage2/entry:test")
    counted = [member for member in members if member.red_refusal("b_line") is None]
    assert entry["reds"] == {
        "B_lineAgent": len(counted),
        "RedMeanderAgent": 100,
        "SleepAgent": 100,
    }
    assert rows["cage2/x3@1:train"]["hosts"] == (34, 44)


def test_a_changed_generator_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "generate_tables", lambda seed, options: CAGE2)  # noqa: ARG005
    with pytest.raises(RuntimeError, match="cage2/users:test must have its published scenarios"):
        suites._members.__wrapped__("cage2/users", "test")


@pytest.mark.soak
def test_the_committed_suites_follow_from_their_definitions() -> None:
    text = suites.to_json(suites.build_records())
    assert text == suites._FILE.read_text(encoding="utf-8")
    assert isinstance(resolve_scenarios("cage2")[0], Scenario)
