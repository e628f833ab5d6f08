"""Searches on a real cluster: two raylets, one of which is killed."""

import csv
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from cagepool import runs
from cagepool.search import search
from cagepool.search.config import SearchConfig
from cagepool.search.records import read_decisions
from cagepool.train.ray import trainings
from tests.search.silent import Silent
from tests.search.test_loop import QUICK, numbers_of, searched
from tests.train.cluster.nodes import TwoNodes, two_nodes

pytestmark = pytest.mark.ray

RAY = {"backend": "ray", "ray_actors": 2}
LONG = {**QUICK, **RAY, "gate": False, "total_episodes": 4000, "max_episodes_per_order": 1000}


@pytest.fixture(scope="module")
def here() -> Iterator[Path]:
    """The folder in which the nodes train; pytest's are too deep for the sockets of Ray."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def cluster(here: Path) -> Iterator[TwoNodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(here))
        with two_nodes() as nodes:
            yield nodes


@pytest.fixture(scope="module")
def undisturbed(cluster: TwoNodes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search of two orders at a time to which nothing happened."""
    assert cluster.alive() == 2
    return searched(tmp_path_factory.mktemp("undisturbed") / "search", **LONG).path


def but_for_repeats(folder: Path) -> dict[str, Any]:
    with (folder / "decisions.csv").open() as file:
        decisions = [{**row, "repeated": ""} for row in csv.DictReader(file)]
    return {**numbers_of(folder), "decisions.csv": decisions}


@pytest.mark.usefixtures("cluster")
def test_one_order_at_a_time_gives_the_same_numbers_as_no_cluster(tmp_path: Path) -> None:
    local = searched(tmp_path / "local", total_episodes=80)
    by_ray = searched(tmp_path / "ray", total_episodes=80, backend="ray")

    assert numbers_of(by_ray.path) == numbers_of(local.path)


def test_a_node_killed_in_a_search_costs_nothing_and_is_counted(
    cluster: TwoNodes,
    here: Path,
    undisturbed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trainings, "ASKING_SECONDS", 0.05)  # not to miss the moment
    killed: list[bool] = []

    def kill() -> bool:
        under_way = [*here.glob(f"*/*/{runs.METRICS}")]
        if len(under_way) == 2 and not killed:
            cluster.kill_node()
            killed.append(True)
        return False

    run = search.create(tmp_path / "search", SearchConfig(**LONG))
    assert search.search(run, Silent(), kill)
    cluster.replace_node()

    decisions = read_decisions(run.path)
    assert killed
    assert sum(decision.repeated for decision in decisions) >= 1
    assert decisions[-1].total_episodes == 4000
    assert but_for_repeats(run.path) == but_for_repeats(undisturbed)


@pytest.mark.usefixtures("cluster")
def test_a_search_of_two_at_a_time_is_stopped_and_resumed_to_the_same_numbers(
    undisturbed: Path, tmp_path: Path
) -> None:
    asked = iter(range(3))
    run = search.create(tmp_path / "search", SearchConfig(**LONG))
    assert not search.search(run, Silent(), lambda: next(asked, None) is None)
    assert [decision.outcome for decision in read_decisions(run.path)[-2:]] == ["", ""]
    assert search.search(run, Silent(), lambda: False)

    assert numbers_of(run.path) == numbers_of(undisturbed)


@pytest.mark.usefixtures("cluster")
def test_two_orders_at_a_time_never_exceed_the_budget(tmp_path: Path) -> None:
    run = searched(tmp_path / "search", **RAY)
    decisions = read_decisions(run.path)
    episodes = [decision.episodes or 0 for decision in decisions]

    assert decisions[1].inherits is None  # the first one was not done
    assert 175 - 10 < sum(episodes) <= 175
    assert all(decision.reserved <= decision.allowance for decision in decisions)
