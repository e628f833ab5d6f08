"""Training on a real cluster: two raylets, one of which is killed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cagepool import runs
from cagepool.cli.main import run as command
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.ppo import Trainer
from tests.train.cluster.nodes import TwoNodes, two_nodes
from tests.train.kept import bits, table
from tests.train.listening import Silent
from tests.train.test_resume import SMALL, after, trained

pytestmark = pytest.mark.ray

TWO = SMALL.with_settings(
    backend="ray", ray_actors=2, overlap=True, order="reverse", order_input=True,
    early_stopping=False,
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster() -> Iterator[TwoNodes]:
    with two_nodes() as nodes:
        yield nodes


@pytest.fixture(scope="module")
def undisturbed(cluster: TwoNodes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two actors to whom nothing happened."""
    assert cluster.alive() == 2
    return trained(tmp_path_factory.mktemp("undisturbed") / "run", TWO)


def numbers_of(path: Path) -> dict[str, Any]:
    """What a run leaves behind, but for times and what only the collectors know."""
    metrics = table(path / runs.METRICS)
    for row in metrics:
        row.pop("replaced")
    last = runs.open_run(path).checkpoint("last")
    learned = {name: array for name, array in last.arrays.items() if "collector" not in name}
    assert last.state["finished"]
    return {"metrics": metrics, "checks": table(path / runs.CHECKS), "learned": bits(learned)}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"overlap": True, "universal": True, "order_input": True},
        {"env": "tests.train.scripted:Counting", "backend": "workers", "total_episodes": 40},
    ],
    ids=["in turn", "async", "workers"],
)
def test_one_actor_gives_the_same_numbers_as_none(tmp_path: Path, settings: dict[str, Any]) -> None:
    config = SMALL.with_settings(**settings)
    local = trained(tmp_path / "local", config)
    by_ray = trained(tmp_path / "ray", config.with_settings(backend="ray"))

    assert numbers_of(by_ray) == numbers_of(local)


def test_a_node_killed_in_training_costs_nothing_and_is_counted(
    cluster: TwoNodes, undisturbed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    updates = iter(range(3))

    def kill() -> bool:
        if next(updates, None) == 2:
            cluster.kill_node()
        return False

    run = runs.create(tmp_path / "run", TWO.as_dict(), "0.1.0")
    assert runner.train(run, Silent(), kill)
    cluster.replace_node()

    assert command(["runs", str(tmp_path)]) == 0
    assert f"{run.path}: 1 actor replaced\n" in capsys.readouterr().out
    assert run.metrics()["episodes"][-1] == TWO.run.total_episodes
    assert numbers_of(run.path) == numbers_of(undisturbed)


def test_a_run_of_two_actors_resumes_to_the_same_numbers(
    cluster: TwoNodes, undisturbed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.create(tmp_path / "run", TWO.as_dict(), "0.1.0")
    assert not runner.train(run, Silent(), after(4))
    assert command(["train", "--resume", str(run.path), "--ray-address", cluster.address]) == 0

    assert f"evaluate it with: cagepool evaluate {run.path}" in capsys.readouterr().out
    assert numbers_of(run.path) == numbers_of(undisturbed)


@pytest.mark.usefixtures("cluster")
def test_shares_that_end_at_different_moments_spend_the_budget_exactly() -> None:
    config = SMALL.with_settings(
        env="tests.train.scripted:Counting", backend="ray", ray_actors=2, n_envs=3,
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


def test_more_actors_than_games_are_refused() -> None:
    with pytest.raises(ValueError, match="got 3 for 2 games"):
        Trainer(TrainConfig.from_flat(n_envs=2, backend="ray", ray_actors=3))


def test_actors_without_ray_are_refused() -> None:
    with pytest.raises(ValueError, match=r"env\.ray_actors needs env\.backend ray, got auto"):
        TrainConfig.from_flat(ray_actors=2)
