"""Training with Ray actors on a cluster of two nodes, one of which is killed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cagepool import runs
from cagepool.cli.main import run as command
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.ppo import Trainer
from tests.train.null_listener import NullListener
from tests.train.ray.local_cluster import TwoNodes, two_nodes
from tests.train.run_results import as_bytes, table_without_times
from tests.train.short_runs import SHORT, create_run, stop_after, train_run

pytestmark = pytest.mark.ray

TWO_ACTORS = SHORT.with_settings(
    backend="ray", ray_actors=2, overlap=True, order="reverse", order_input=True,
    early_stopping=False, belief=True, critic_inputs="true",
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster() -> Iterator[TwoNodes]:
    with two_nodes() as nodes:
        yield nodes


@pytest.fixture(scope="module")
def uninterrupted(cluster: TwoNodes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run of two actors without a fault."""
    assert cluster.alive_nodes() == 2
    return train_run(tmp_path_factory.mktemp("uninterrupted") / "run", TWO_ACTORS)


def results_of(path: Path) -> dict[str, Any]:
    """Tables and learner state of a run, without times and the state of its collector."""
    metrics = table_without_times(path / runs.METRICS)
    for row in metrics:
        row.pop("replaced")
    last = runs.open_run(path).checkpoint("last")
    learner = {name: array for name, array in last.arrays.items() if "collector" not in name}
    assert last.state["finished"]
    return {
        "metrics": metrics,
        "checks": table_without_times(path / runs.EVALUATIONS),
        "learner": as_bytes(learner),
    }


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="in turn"),
        pytest.param(
            {"overlap": True, "universal": True, "order_input": True},
            id="async",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            {"belief": True, "critic_inputs": "true", "red_agent": "b_line:0.6+meander:0.4"},
            id="belief",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            {"env": "tests.train.toy_envs:Counting", "backend": "workers", "total_episodes": 40},
            id="workers",
            marks=pytest.mark.soak,
        ),
        pytest.param({"network": "gru", "threads": 1}, id="gru", marks=pytest.mark.soak),
    ],
)
def test_one_actor_gives_the_same_results_as_none(tmp_path: Path, settings: dict[str, Any]) -> None:
    config = SHORT.with_settings(**settings)
    local = train_run(tmp_path / "local", config)
    with_ray = train_run(tmp_path / "ray", config.with_settings(backend="ray"))

    assert results_of(with_ray) == results_of(local)


def test_a_killed_node_changes_no_result_and_is_counted(
    cluster: TwoNodes, uninterrupted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    updates = iter(range(3))

    def kill() -> bool:
        if next(updates, None) == 2:
            cluster.kill_node()
        return False

    run = create_run(tmp_path / "run", TWO_ACTORS)
    assert runner.train(run, NullListener(), kill)
    cluster.replace_node()

    assert command(["runs", str(tmp_path)]) == 0
    assert f"{run.path}: 1 actor replaced\n" in capsys.readouterr().out
    assert run.metrics()["episodes"][-1] == TWO_ACTORS.run.total_episodes
    assert results_of(run.path) == results_of(uninterrupted)


@pytest.mark.soak
def test_a_run_of_two_actors_resumes_to_the_same_results(
    cluster: TwoNodes, uninterrupted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = create_run(tmp_path / "run", TWO_ACTORS)
    assert not runner.train(run, NullListener(), stop_after(4))
    assert command(["train", "--resume", str(run.path), "--ray-address", cluster.address]) == 0

    assert f"evaluate it with: cagepool evaluate {run.path}" in capsys.readouterr().out
    assert results_of(run.path) == results_of(uninterrupted)


@pytest.mark.soak
def test_a_recurrent_policy_keeps_its_memory_when_a_node_is_killed(
    cluster: TwoNodes, tmp_path: Path
) -> None:
    config = SHORT.with_settings(backend="ray", ray_actors=2, network="gru", threads=1)
    uninterrupted = train_run(tmp_path / "uninterrupted", config)
    updates = iter(range(3))

    def kill() -> bool:
        if next(updates, None) == 2:
            cluster.kill_node()
        return False

    run = create_run(tmp_path / "run", config)
    assert runner.train(run, NullListener(), kill)
    cluster.replace_node()

    assert results_of(run.path) == results_of(uninterrupted)


@pytest.mark.soak
@pytest.mark.usefixtures("cluster")
def test_shards_that_end_at_different_times_play_the_exact_number_of_episodes() -> None:
    config = SHORT.with_settings(
        env="tests.train.toy_envs:Counting", backend="ray", ray_actors=2, n_envs=3,
        total_episodes=50, update_steps=5,
    )  # fmt: skip
    with Trainer(config) as trainer:
        updates = list(trainer.updates())

    assert updates[-1].episodes == sum(len(update.finished.returns) for update in updates) == 50
    assert updates[-1].steps == sum(sum(update.finished.lengths) for update in updates)


@pytest.mark.usefixtures("cluster")
def test_an_error_in_an_actor_reaches_the_caller() -> None:
    with pytest.raises(ValueError, match=r"^env must be an id that Gymnasium knows.*no such"):
        Trainer(TrainConfig.from_flat(env="no such", backend="ray"))


def test_more_actors_than_environments_are_refused() -> None:
    with pytest.raises(ValueError, match="must be at most the number of environments, got 3 for 2"):
        Trainer(TrainConfig.from_flat(n_envs=2, backend="ray", ray_actors=3))


def test_several_actors_without_the_ray_backend_are_refused() -> None:
    with pytest.raises(ValueError, match=r"env\.ray_actors needs env\.backend ray, got auto"):
        TrainConfig.from_flat(ray_actors=2)
