"""The table of scores on held-out networks."""

import numpy as np

from benchmarks.suites import held_out
from cagepool.evaluate import ScoreTable, Trial
from cagepool.policy.defenders import scripted_defender
from cagepool.scenarios import CAGE2


def test_the_table_has_a_row_per_defender_and_a_column_per_set() -> None:
    games = {"B_lineAgent": np.array([[[-1.0], [-3.0]], [[-1.0], [-3.0]]])}
    two = Trial(episodes=2, max_steps=30, scenario=(CAGE2.with_name("1"), CAGE2.with_name("2")))
    many = held_out.row("a", "x", "cage2/users:test", ScoreTable(two, games))
    alone = Trial(episodes=2, max_steps=30)
    one = held_out.row("b", None, "cage2", ScoreTable(alone, {"x": games["B_lineAgent"][:, :1]}))
    first, second = held_out.table([many, one]).splitlines()[2:]
    assert first.split("|")[1:5] == [" a ", "  ", "  ", " -2.0 ± 1.0 (1.4) "]
    assert second.split("|")[1:5] == [" b ", "  ", " -1.0 ", "  "]


def test_every_set_can_be_loaded_and_played() -> None:
    scores = held_out.play(scripted_defender("sleep"), (CAGE2,), episodes=2)
    assert scores is not None
    assert scores.total.mean < 0
