"""Policies by the name that a user types."""

import json
from pathlib import Path

import numpy as np
import pytest

from cagepool.evaluate import Trial
from cagepool.evaluate.statistics import play_and_count
from cagepool.policy.load import load, load_run
from tests.evaluate.folders import add_checkpoint, make_run
from tests.sim.games import start_batch

FEW = Trial(episodes=40, seed=5)


def test_a_policy_plays_on_the_edition_of_its_training(tmp_path: Path) -> None:
    trained = load(str(make_run(tmp_path / "one", edition="leaderboard")))

    assert trained.edition == "leaderboard"
    assert load("sleep").edition == "2.1"


def test_the_best_policy_is_played_unless_the_last_is_asked_for(tmp_path: Path) -> None:
    folder = str(make_run(tmp_path / "one", kind="last"))
    without_best = load(folder)
    add_checkpoint(Path(folder), network=1, kind="best", update=1)

    chosen = [load(folder), load(folder, "last")]

    assert without_best.checkpoint == "last-000002"
    assert [one.checkpoint for one in chosen] == ["best-000001", "last-000002"]
    totals = [play_and_count(one, FEW, "B_lineAgent").totals for one in chosen]
    assert (totals[0] != totals[1]).any()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("hope", "a defender must be a run folder, .* or one of sleep, .*zoo:minutes; got 'hope'$"),
        ("react-restor", "got 'react-restor', did you mean react-restore?"),
        ("nowhere:policy", "policy names the module 'nowhere', which does not exist"),
        ("pyproject.toml", "a model file must be .onnx, or .zip of Stable-Baselines3, got pyproj"),
        (".", r"a run must be a folder with config.json, \. has none"),
    ],
)
def test_who_cannot_play_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        load(name)


@pytest.mark.parametrize("name", ["sleep", "zoo:minutes", "nowhere:policy", "nowhere"])
def test_the_last_checkpoint_of_what_is_no_run_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"only a run folder has a last checkpoint, got '{name}'"):
        load(name, "last")


def test_a_policy_for_another_game_is_refused(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "pole", env="CartPole-v1")

    policy = load(str(folder))

    with pytest.raises(ValueError, match=r"must be one for CAGE-2, that of .*pole is for another"):
        policy.begin(start_batch(2))


def test_settings_that_an_old_folder_lacks_take_their_defaults(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "old")
    expected = load_run(folder)
    config = json.loads((folder / "config.json").read_text())
    del config["settings"]["env"]["edition"]
    del config["settings"]["features"]["time_left"]
    del config["settings"]["order"]
    (folder / "config.json").write_text(json.dumps(config))

    found = load_run(folder)

    assert found.settings == expected.settings
    assert (found.edition, found.order) == (expected.edition, expected.order)
    totals = [play_and_count(one, FEW, "B_lineAgent").totals for one in (found, expected)]
    np.testing.assert_array_equal(totals[0], totals[1])
