"""A policy as a CybORG agent; tests marked parity run CybORG's own evaluation script."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cagepool.cyborg import locate
from cagepool.evaluate import Trial
from cagepool.evaluate.rollout import game_seeds, start_games
from cagepool.integrations import CybORGAgent
from cagepool.policy.load import load
from cagepool.sim.names import OFFICIAL_REDS
from tests.evaluate.folders import make_run


@pytest.fixture
def agent(tmp_path: Path) -> CybORGAgent:
    return CybORGAgent(make_run(tmp_path / "one"))


def test_an_agent_plays_as_its_policy_and_clears_its_memory_at_the_end(
    agent: CybORGAgent, tmp_path: Path
) -> None:
    trial = Trial(episodes=2)
    policy = load(tmp_path / "one")
    for seed in game_seeds(trial, "B_lineAgent"):
        batch = start_games(trial, "B_lineAgent", np.array([seed]))
        policy.begin(1)
        for _ in range(50):
            action = agent.get_action(batch.observations[0].astype(int), 145)
            assert type(action) is int
            assert action == policy.act(batch.observations)[0]
            batch.step(np.array([action]))
        agent.end_episode()


def test_an_agent_carries_its_belief_from_step_to_step_and_game_to_game(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "believer", belief=True)
    agent, policy = CybORGAgent(folder), load(folder)
    trial = Trial(episodes=2)
    for seed in game_seeds(trial, "RedMeanderAgent"):
        batch = start_games(trial, "RedMeanderAgent", np.array([seed]))
        policy.begin(1)
        for _ in range(40):
            action = agent.get_action(batch.observations[0].astype(int), 145)
            assert action == policy.act(batch.observations)[0]
            batch.step(np.array([action]))
        agent.end_episode()


def test_an_agent_has_the_methods_of_cyborgs_own(agent: CybORGAgent) -> None:
    agent.train(None)
    agent.set_initial_values(145, np.zeros(52))

    assert 0 <= agent.get_action([0] * 52, 145) < 145


@pytest.mark.parametrize(
    ("observation", "action_space", "sentence"),
    [
        (np.zeros(78), 145, r"must have 52 values, as ChallengeWrapper .* got shape \(78,\)"),
        (np.zeros(52), 41, "there must be 145 actions, as behind ChallengeWrapper; got 41"),
    ],
    ids=["observation", "actions"],
)
def test_other_wrappers_are_refused(
    agent: CybORGAgent, observation: Any, action_space: int, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        agent.get_action(observation, action_space)


@pytest.mark.parity
def test_cyborgs_own_evaluation_script_runs_with_an_agent(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "one")
    script = locate.package_folder(locate.load()) / "Evaluation" / "evaluation.py"
    source = script.read_text()
    # The changes of docs/evaluation.md, with fewer games, no prompts and another output folder.
    for old, new in (
        ("from CybORG.Agents.SimpleAgents.BlueLoadAgent import BlueLoadAgent", ""),
        ("agent = BlueLoadAgent()", f"agent = CybORGAgent({str(folder)!r})"),
        ("MAX_EPS = 100", "MAX_EPS = 2"),
        ("commit_hash = get_git_revision_hash()", "commit_hash = ''"),
        ("inspect.getsource(wrap)", "'\\nreturn wrapped'"),
        (
            "file_name = str(inspect.getfile(CybORG))[:-10] + '/Evaluation/'",
            f"file_name = '{folder}/'",
        ),
    ):
        assert old in source
        source = source.replace(old, new)
    printed = io.StringIO()
    names = {"__name__": "__main__", "CybORGAgent": CybORGAgent, "input": lambda _asked: "x"}

    with redirect_stdout(printed):
        exec(compile(source, script, "exec"), names)

    means = re.findall(r"red agent (\w+) and steps (\d+) is: (-?[\d.]+)", printed.getvalue())
    cells = {(red, int(steps)) for red, steps, _ in means}
    assert cells == {(red, steps) for red in OFFICIAL_REDS for steps in (30, 50, 100)}
