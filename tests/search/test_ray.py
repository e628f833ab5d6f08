"""Searches on a Ray cluster with two nodes, one of which is killed."""

import csv
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from cagepool import runs
from cagepool.experiments import executor
from cagepool.search import search
from cagepool.search.config import SearchConfig
from cagepool.search.records import read_decisions
from tests.search.test_search import QUICK, run_search, tables_without_times
from tests.train.ray.local_cluster import TwoNodes, two_nodes

pytestmark = pytest.mark.ray

RAY = {"backend": "ray", "ray_actors": 2}
LONG = {
    **QUICK,
    **RAY,
    "early_stopping": False,
    "total_episodes": 4000,
    "max_episodes_per_order": 1000,
}


@pytest.fixture(scope="module")
def here() -> Iterator[Path]:
    """Folder in which the nodes train; paths of pytest's folders are too long for Ray's sockets."""
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
    """A search with two concurrent trainings and no interruption."""
    assert cluster.alive_nodes() == 2
    return run_search(tmp_path_factory.mktemp("undisturbed") / "search", **LONG).path


def tables_without_restarts(folder: Path) -> dict[str, Any]:
    with (folder / "decisions.csv").open() as file:
        decisions = [{**row, "repeated": ""} for row in csv.DictReader(file)]
    return {**tables_without_times(folder), "decisions.csv": decisions}


@pytest.mark.soak
@pytest.mark.usefixtures("cluster")
def test_one_ray_actor_gives_the_same_tables_as_a_local_search(tmp_path: Path) -> None:
    local = run_search(tmp_path / "local", total_episodes=80)
    by_ray = run_search(tmp_path / "ray", total_episodes=80, backend="ray")

    assert tables_without_times(by_ray.path) == tables_without_times(local.path)


@pytest.mark.soak
def test_a_killed_node_changes_no_result_and_is_counted(
    cluster: TwoNodes,
    here: Path,
    undisturbed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executor, "POLL_SECONDS", 0.05)  # so that the node is killed in time
    killed: list[bool] = []

    def kill() -> bool:
        pending = [*here.glob(f"*/*/{runs.METRICS}")]
        if len(pending) == 2 and not killed:
            cluster.kill_node()
            killed.append(True)
        return False

    run = search.create(tmp_path / "search", SearchConfig.from_flat(**LONG))
    assert search.search(run, should_stop=kill)
    cluster.replace_node()

    decisions = read_decisions(run.path)
    assert killed
    assert sum(decision.repeated for decision in decisions) >= 1
    assert decisions[-1].total_episodes == 4000
    assert tables_without_restarts(run.path) == tables_without_restarts(undisturbed)


@pytest.mark.soak
@pytest.mark.usefixtures("cluster")
def test_two_concurrent_trainings_are_stopped_and_resumed_to_the_same_tables(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "POLL_SECONDS", 0.05)  # so that it is stopped in time
    asked = iter(range(3))
    run = search.create(tmp_path / "search", SearchConfig.from_flat(**LONG))
    assert not search.search(run, should_stop=lambda: next(asked, None) is None)
    assert [decision.outcome for decision in read_decisions(run.path)[-2:]] == ["", ""]
    assert search.search(run)

    assert tables_without_times(run.path) == tables_without_times(undisturbed)


@pytest.mark.usefixtures("cluster")
def test_two_concurrent_trainings_never_exceed_the_budget(tmp_path: Path) -> None:
    run = run_search(tmp_path / "search", **RAY)
    decisions = read_decisions(run.path)
    episodes = [decision.episodes or 0 for decision in decisions]

    assert decisions[1].inherits is None  # the first training was still pending
    assert 175 - 10 < sum(episodes) <= 175
    assert all(decision.reserved_episodes <= decision.allowance for decision in decisions)
