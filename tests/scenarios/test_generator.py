from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cagepool import Scenario
from cagepool.scenarios import CAGE2
from cagepool.scenarios.generator import Draws
from cagepool.scenarios.images import IMAGES
from tests.scenarios.files import SAMPLES, sample

REDS = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")


def bounds(low: int, high: int) -> st.SearchStrategy[int | tuple[int, int]]:
    numbers = st.integers(low, high)
    return numbers | st.tuples(numbers, numbers).map(lambda pair: (min(pair), max(pair)))


OPTIONS = st.fixed_dictionaries(
    {
        "users": bounds(2, 20),
        "enterprise": bounds(1, 10),
        "op_hosts": bounds(0, 10),
        "subnets": st.just("cage2") | bounds(1, 8),
        "images": st.sampled_from(["cage2", "kinds", "any"]),
        "links": st.sampled_from(["cage2", "random"]),
        "entry": st.sampled_from(["User0", "random"]),
    }
)


@given(seed=st.integers(0, 2**70), options=OPTIONS, asks_b_line=st.booleans())
def test_a_random_scenario_is_valid_and_survives_saving(
    seed: int,
    options: dict[str, Any],
    asks_b_line: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    reds = ("b_line", "meander") if asks_b_line and options["enterprise"] != 1 else ("meander",)
    try:
        scenario = Scenario.generate(seed, **options, reds=reds)
    except ValueError as error:
        assert "reds must be able to play" in str(error)  # noqa: PT017 - most ranges are playable
        return
    path = tmp_path_factory.getbasetemp() / "generated.yaml"
    scenario.save(path, overwrite=True)
    again = Scenario.load(path)
    assert again.hash == scenario.hash == Scenario.generate(seed, **options, reds=reds).hash
    assert again.images == scenario.images
    assert [again.red_refusal(red) for red in REDS] == [scenario.red_refusal(red) for red in REDS]
    assert all(scenario.red_refusal(red) is None for red in reds)
    assert 2 <= len(scenario.hosts) <= 64
    assert sorted(host for members in scenario.members for host in members) == [
        *range(len(scenario.hosts))
    ]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_saved_file_has_the_same_tables(name: str, tmp_path: Path) -> None:
    scenario = sample(name)
    scenario.save(tmp_path / "saved.yaml")
    images = Path(__file__).parents[1] / "golden" / "scenarios" / "images"
    again = Scenario.load(tmp_path / "saved.yaml", images=images)
    assert again == scenario
    assert again.images == scenario.images
    assert again.name == "saved"


def test_saving_does_not_replace_a_file_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text("precious", encoding="utf-8")
    with pytest.raises(ValueError, match=r"must be saved to a new file, .*scenario.yaml exists"):
        CAGE2.save(path)
    assert path.read_text(encoding="utf-8") == "precious"
    CAGE2.save(path, overwrite=True)
    assert Scenario.load(path) == CAGE2
    with pytest.raises(ValueError, match=r"a file that can be written, .*: No such file or dir"):
        CAGE2.save(tmp_path / "missing" / "scenario.yaml")
    assert [one.name for one in tmp_path.iterdir()] == ["scenario.yaml"]


def test_cage_2_is_a_member_of_its_own_class() -> None:
    scenario = Scenario.generate(
        5, users=5, enterprise=3, op_hosts=3, images="cage2", links="cage2"
    )
    assert scenario == CAGE2


def test_the_draws_of_a_seed_never_change() -> None:
    draws = Draws(7)
    assert [draws.below(1000) for _ in range(6)] == [705, 436, 858, 453, 975, 671]
    assert sorted(Draws(7, stream=1).sample(range(9), 9)) == [*range(9)]
    assert Scenario.generate(7).hash.startswith("4d22593dab494035ff64")


def test_a_number_is_drawn_from_its_whole_range() -> None:
    scenarios = [Scenario.generate(seed, users=(3, 5), enterprise=(2, 3)) for seed in range(60)]
    counts = {sum(host.startswith("User") for host in scenario.hosts) for scenario in scenarios}
    assert counts == {3, 4, 5}


def test_images_are_drawn_from_those_that_are_named() -> None:
    scenario = Scenario.generate(3, images=("Internal", "linux_user_host2"))
    drawn = {
        image
        for host, image in zip(scenario.hosts, scenario.images, strict=True)
        if host not in ("Defender", "Op_Server0")
    }
    assert drawn == {"Internal", "linux_user_host2"}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Scenario.generate(-1), "seed must be a whole number, at least 0, got -1"),
        (lambda: Scenario.generate(0, users=1), "users must be a number, at least 2, or .*got 1"),
        (lambda: Scenario.generate(0, users=(5, 3)), r"users must be .*got \(5, 3\)"),
        (lambda: Scenario.generate(0, users=60), "must give at most 64 hosts .*got up to 71"),
        (lambda: Scenario.generate(0, subnets=9), "subnets must be at most 8, got 9"),
        (lambda: Scenario.generate(0, images=("toaster",)), "images must be cage2, kinds, any or"),
        (lambda: Scenario.generate(0, reds=("purple",)), "red must be one of B_lineAgent"),
        (
            lambda: Scenario.generate(0, enterprise=1),
            "in 100 attempts none could be played: B_lineAgent needs at least three hosts",
        ),
    ],
)
def test_impossible_ranges_are_one_sentence(call: Callable[[], Scenario], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_every_image_is_drawn_by_any() -> None:
    scenarios = [Scenario.generate(seed, images="any") for seed in range(40)]
    assert {image for scenario in scenarios for image in scenario.images} == IMAGES.keys()
