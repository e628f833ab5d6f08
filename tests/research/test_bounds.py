"""Floors of the loss: the model is the game, the optimum is optimal, and the tables are current."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cagepool import runs
from cagepool.policy.load import zoo_folder, zoo_names
from cagepool.sim.names import EDITIONS, host_index
from research.bounds import __main__ as command
from research.bounds.check import check_transitions
from research.bounds.floors import SUM, USERS, play_optimal_policy
from research.bounds.gap import B_LINE, MEANDER, bounds_of, gap_rows, replace_blocks
from research.bounds.host_model import Condition, HostModel, exploit_outcome
from research.bounds.meander import MeanderConfig, TrueStateTraining
from research.bounds.model import Column, Information, Model, ModelConfig, Service, Session
from research.bounds.solve import Graph, backward_induction, build_graph, length_weights
from tests.research.brute_force import BruteForce, Node

RESULT: dict[str, Any] = json.loads(command.RESULT.read_text())
GAMES: list[tuple[str, Information]] = [
    (edition, information) for edition in EDITIONS for information in command.INFORMATION
]


@cache
def graph_of(user: str, edition: str, information: Information) -> Graph:
    config = ModelConfig(USERS.index(user), edition, information, "none")
    return build_graph(Model(config))


def test_femitter_on_enterprise1_makes_half_of_the_visible_exploits_unremovable() -> None:
    model = HostModel(host_index("Enterprise1"), "2.1")
    (decoyed,) = model.events.decoys(Condition(0, -1, mail_immune=False)).values()
    outcome = exploit_outcome(host_index("Enterprise1"), model.events.scan(decoyed))
    # FTP is the top option, 0.75; the five others have 0.05 each, EternalBlue fails.
    assert sum(outcome) == pytest.approx(0.2)
    visible = outcome.user_detected + outcome.privileged_detected + outcome.user_ssh
    assert outcome.user_detected / visible == pytest.approx(0.095 / 0.1925)


def test_merged_conditions_of_a_host_exploit_alike() -> None:
    model = HostModel(host_index("User2"), "leaderboard")
    assert model.size < len(model.number_of)
    for condition, number in model.number_of.items():
        assert exploit_outcome(model.host, condition) == pytest.approx(model.outcomes[number])


@pytest.mark.parametrize(("edition", "information"), GAMES)
def test_real_games_are_games_of_the_model(edition: str, information: Information) -> None:
    check = check_transitions(edition, information, games=50, seed=3)
    assert check.transitions == 50 * 98  # blue knows the user host from the third step on
    # About 20 classes: one of them above 5 has a probability below 1e-5.
    assert check.as_dict()["largest_z"] < 5


def as_state(search: BruteForce, graph: Graph, node: Node) -> np.ndarray[Any, np.dtype[np.int64]]:
    """State of the model for a state of the search in which blue knows everything."""
    state = graph.model.start
    state[0, Column.POSITION], state[0, Column.REACHED_12] = node.position, node.reached_12
    names = {"seen": Session.REMOVABLE, "unseen": Session.UNREMOVABLE}
    for role, session in enumerate(node.sessions):
        state[0, Column.PRIVILEGED + role] = session == "privileged"
        if session in names:
            state[0, Column.SESSION] = names[session]
    state[0, Column.SERVICE] = Service[node.service.upper()]
    for role, condition in enumerate(node.conditions[:3]):
        state[0, Column.CONDITION + role] = graph.model.models[role].number_of[condition]
    assert len(search.hosts) == len(node.sessions)
    return state


@pytest.mark.parametrize(
    ("user", "edition", "information"),
    [
        ("User1", "leaderboard", "observation"),
        ("User2", "leaderboard", "full"),
        ("User3", "2.1", "full"),
        ("User3", "leaderboard", "observation"),
        ("User4", "2.1", "observation"),
    ],
)
def test_short_games_have_the_value_of_exhaustive_search(
    user: str, edition: str, information: Information
) -> None:
    search = BruteForce(user, edition, full_information=information == "full")
    graph = graph_of(user, edition, information)
    rng, node, checked = np.random.default_rng(7), search.start(), 0
    values = backward_induction(graph, [1.0] * 4)
    for _ in range(40):
        belief = frozenset({(node, 1.0)})
        actions = search.actions(belief)
        moved = search.after_blue(node, actions[rng.integers(len(actions))])
        outcomes = list(search.after_red(moved))
        chosen = rng.choice(len(outcomes), p=[probability for probability, *_ in outcomes])
        _, node, visible = outcomes[chosen]
        if visible is not None and information == "observation":
            continue  # blue does not know this state
        steps = 4 if checked < 3 else 2
        index = graph.index(as_state(search, graph, node))[0]
        found = search.value(frozenset({(node, 1.0)}), steps)
        assert values[4 - steps][index] == pytest.approx(found, abs=1e-9)
        checked += 1
    assert checked >= 20


@pytest.mark.soak
def test_the_optimal_policy_scores_its_value_in_the_core() -> None:
    found = play_optimal_policy("leaderboard", "observation", games=300, seed=11)
    # Without decoys on Op_Server0 the floor is the same, so that the policy can reach it.
    assert abs(found["above_floor_in_errors"]) < 4
    assert found["standard_error"] < 0.5


def test_no_policy_of_the_zoo_beats_the_floor() -> None:
    for name in zoo_names():
        evaluation = runs.open_run(zoo_folder(name)).evaluation()
        assert evaluation is not None
        floor = bounds_of(B_LINE, evaluation.edition, RESULT)
        for cell in evaluation.scores:
            if cell.red == B_LINE:
                assert cell.mean < floor[str(cell.length)] + 3 * cell.standard_error


@pytest.mark.parametrize("user", ["User3", "User4"])
@pytest.mark.parametrize(("edition", "information"), GAMES)
def test_the_published_floors_are_those_of_the_program(
    user: str, edition: str, information: Information
) -> None:
    graph = graph_of(user, edition, information)
    start = graph.index(graph.model.start)[0]
    published = RESULT["b_line"][edition][information]["by_user"][user]
    values = backward_induction(graph, [1.0] * 100)
    for length in (30, 50, 100):
        assert values[100 - length][start] == pytest.approx(published[str(length)], abs=1e-4)
    assert backward_induction(graph, length_weights())[0][start] == pytest.approx(
        published[SUM], abs=1e-4
    )


@pytest.mark.parametrize("document", command.DOCUMENTS, ids=lambda path: path.name)
def test_the_tables_of_the_documents_are_current(document: Path) -> None:
    text = document.read_text()
    assert "<!-- bounds: gap -->" in text
    assert replace_blocks(text, RESULT) == text, "run python -m research.bounds tables"


def test_the_gap_is_the_distance_from_score_to_bound() -> None:
    evaluation = runs.open_run(zoo_folder("zoo:best-2.1")).evaluation()
    assert evaluation is not None
    result = {
        "b_line": {"2.1": {"observation": {"floor": dict.fromkeys(("30", "50", "100"), -1.0)}}}
    }
    mean = {(score.red, score.length): score.mean for score in evaluation.scores}
    rows = gap_rows("zoo:best-2.1", evaluation, result)
    assert [row[1:4] for row in rows[:3]] == [
        [B_LINE, "score", f"{mean[B_LINE, 30]:.2f}"],
        ["", "floor", "-1.00"],
        ["", "left", f"{-1 - mean[B_LINE, 30]:.2f}"],
    ]
    assert rows[3][1:4] == [MEANDER, "score", f"{mean[MEANDER, 30]:.2f}"]
    assert rows[4][3] == "\N{EN DASH}"  # no estimate yet


def test_a_policy_learns_from_the_true_state(capsys: pytest.CaptureFixture[str]) -> None:
    config = MeanderConfig(games=20, episodes=40, check_updates=1, check_games=20)
    training = TrueStateTraining(config)
    weights, _ = training.run()
    totals = training.evaluate(weights, 30)
    training.close()
    assert totals.shape == (30, 3)
    assert (np.diff(totals, axis=1) <= 0).all()  # a longer game never costs less
    assert capsys.readouterr().out.count("2.1, seed 1, ") == 2
