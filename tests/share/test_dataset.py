"""Recorded datasets: Minari reads them, and their games are games of the environment."""

import re
from pathlib import Path
from typing import Any

import minari
import numpy as np
import pytest

from cagepool.cli.main import run
from cagepool.policy.load import load
from cagepool.share.dataset import RecordOptions, record_dataset
from cagepool.sim.names import RED_AGENTS
from tests.cli.command import python
from tests.test_optional import COMMAND, WITHOUT

EPISODES, STEPS = 12, 20
OPTIONS = RecordOptions(episodes=EPISODES, max_steps=STEPS, seed=4)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("datasets") / "mine-v3"
    return record_dataset(load("zoo:minutes"), folder, OPTIONS)


def test_minari_reads_a_dataset_by_its_name(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(recorded.parent))

    dataset = minari.load_dataset("mine-v3")

    assert (dataset.total_episodes, dataset.total_steps) == (EPISODES, EPISODES * STEPS)
    assert dataset.spec.dataset_id == "mine-v3"
    assert "zoo:minutes (greedy)" in dataset.storage.metadata["description"]
    assert [*minari.list_local_datasets()] == ["mine-v3"]
    (episode,) = dataset.sample_episodes(1)
    assert dataset.observation_space.contains(episode.observations[0])
    assert dataset.action_space.contains(episode.actions[0])
    assert (len(episode.observations), len(episode.actions)) == (STEPS + 1, STEPS)


def test_episodes_are_the_games_that_the_recovered_environment_plays(recorded: Path) -> None:
    dataset = minari.MinariDataset(recorded / "data")
    env = dataset.recover_environment()
    seeds = [int(each["seed"]) for each in dataset.storage.get_episode_metadata(range(EPISODES))]
    reds = set()

    for episode, seed in zip(dataset.iterate_episodes(), seeds, strict=True):
        observation, _ = env.reset(seed=seed)
        states, moves = episode.infos["true_state"], episode.infos["moves"]
        np.testing.assert_array_equal(episode.observations[0], observation)
        assert set(moves[0].tolist()) == {-1}  # nobody has moved yet
        for step, action in enumerate(episode.actions):
            observation, reward, terminated, truncated, _ = env.step(action)
            np.testing.assert_array_equal(episode.observations[step + 1], observation)
            assert episode.rewards[step] == reward
            ended = (episode.terminations[step], episode.truncations[step])
            assert ended == (terminated, truncated)
            check_fields(states[step + 1], env.unwrapped.batch.true_state[0])
            check_fields(moves[step + 1], env.unwrapped.batch.moves[0])
        reds.add(int(states["red"][0]))
    assert reds == {
        int(RED_AGENTS[name]) for name in ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
    }


def check_fields(recorded: Any, played: Any) -> None:
    assert recorded.dtype.names == played.dtype.names
    for name in recorded.dtype.names:
        np.testing.assert_array_equal(recorded[name], played[name], err_msg=name)


def test_datasets_are_split_and_combined_by_minari(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(recorded.parent))
    dataset = minari.MinariDataset(recorded / "data")
    parts = minari.split_dataset(dataset, sizes=[5, 7], seed=0)

    both = minari.combine_datasets([dataset, dataset], "both-v0")

    assert [len(part) for part in parts] == [5, 7]
    assert both.total_episodes == 2 * EPISODES
    last = both[2 * EPISODES - 1]
    np.testing.assert_array_equal(
        last.infos["true_state"]["access"], dataset[EPISODES - 1].infos["true_state"]["access"]
    )


def test_a_policy_can_sample_its_actions(tmp_path: Path) -> None:
    policy = load("zoo:minutes")
    greedy, *sampled = (
        minari.MinariDataset(
            record_dataset(
                policy,
                tmp_path / name,
                RecordOptions(episodes=3, max_steps=20, red="b_line", sample=name != "greedy"),
            )
            / "data"
        )
        for name in ("greedy", "one", "two")
    )

    one, two = ([episode.actions.tolist() for episode in each] for each in sampled)
    assert one == two
    assert one != [episode.actions.tolist() for episode in greedy]


def test_the_command_says_where_the_dataset_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mine"

    assert run(["record", "react-restore", "--episodes", "2", "--out", str(out)]) == 0

    assert f"minari.MinariDataset('{out}/data')" in capsys.readouterr().out.replace("\n", "")
    assert minari.MinariDataset(out / "data").spec.dataset_id == "mine-v0"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--episodes", "0"), "--episodes must be at least 1, got 0"),
        (("--red", "nobody"), "red must be one of .* got 'nobody'"),
        (("--dataset-id", "no id"), "--dataset-id must be a name such as cage2/mine-v0"),
        (("--max-steps", "0"), "--max-steps must be from 1 to 65535, got 0"),
        (("--episodes", "9000000"), "needs .* MB of free disk space"),
    ],
)
def test_wrong_input_is_refused_with_a_sentence(
    arguments: tuple[str, ...], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new"

    assert run(["record", "zoo:minutes", "--out", str(out), *arguments]) == 2

    assert re.search(sentence, capsys.readouterr().err)
    assert not out.exists()


def test_a_folder_in_use_and_a_policy_that_cannot_sample_are_refused(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["record", "zoo:minutes", "--out", str(recorded)]) == 2
    assert f"a dataset needs an empty folder, {recorded} is not empty" in capsys.readouterr().err
    assert run(["record", "sleep", "--sample", "--out", str(tmp_path / "new")]) == 2
    assert "--sample needs a policy trained by cagepool" in capsys.readouterr().err


def test_a_missing_library_is_named_with_its_extra(tmp_path: Path) -> None:
    program = WITHOUT.format(library="minari") + COMMAND

    done = python("-c", program, "record", "sleep", "--out", str(tmp_path / "new"))

    remedy = "pip install minari, or install cagepool with its extra `minari`"
    assert (done.returncode, done.stderr) == (2, f"cagepool: a dataset needs minari: {remedy}\n")
