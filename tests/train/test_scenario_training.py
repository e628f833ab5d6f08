"""Training on other networks: what is played, resumed, evaluated and refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from cagepool import runs
from cagepool.cli.main import run as run_command
from cagepool.evaluate.protocol import score_table
from cagepool.evaluate.rollout import Trial, spread_evenly
from cagepool.integrations import CybORGAgent
from cagepool.policy.load import load
from cagepool.policy.policy import TRAINED_SCENARIOS, TrainedScenarios
from cagepool.scenarios import CAGE2, Layout
from cagepool.sim import Batch, BatchConfig
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.ppo import Trainer
from tests.scenarios.files import FOLDER, sample
from tests.train.null_listener import NullListener
from tests.train.run_results import run_results
from tests.train.short_runs import SHORT, create_run, stop_after, train_run

FILES = ",".join(str(FOLDER / f"{name}.yaml") for name in ("users_minus2", "users_plus2"))
ENTITY = SHORT.with_settings(
    scenario=FILES, network="entity", threads=1, total_episodes=60, activation="relu"
)
PADDED = ENTITY.with_settings(network="mlp", threads=2)


@pytest.fixture(scope="module")
def entity_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_run(tmp_path_factory.mktemp("entity") / "run", ENTITY)


@pytest.fixture(scope="module")
def padded_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_run(tmp_path_factory.mktemp("padded") / "run", PADDED)


def test_episodes_are_played_on_all_networks() -> None:
    config = ENTITY.with_settings(n_envs=40, max_steps=4)
    with Trainer(config) as trainer:
        trainer.collect()
        batch = trainer.collector.worker.sampler.envs.batch  # type: ignore[attr-defined]
        assert {scenario.name for scenario in batch.scenarios} == {"users_minus2", "users_plus2"}
        assert {*batch.scenario_ids.tolist()} == {0, 1}
        assert len(batch.layout.slots) == 15


@pytest.mark.parametrize("config", [ENTITY, PADDED], ids=["entity", "mlp"])
def test_a_resumed_training_gives_the_same_numbers(config: TrainConfig, tmp_path: Path) -> None:
    whole = train_run(tmp_path / "whole", config)
    stopped = create_run(tmp_path / "stopped", config)
    assert not runner.train(stopped, NullListener(), stop_after(2))
    assert runner.train(runs.open_run(stopped.path), NullListener(), lambda: False)

    assert run_results(stopped.path) == run_results(whole)


def test_a_training_is_resumed_only_with_its_scenarios(tmp_path: Path) -> None:
    file = tmp_path / "network.yaml"
    file.write_bytes((FOLDER / "users_minus2.yaml").read_bytes())
    run = create_run(tmp_path / "run", ENTITY.with_settings(scenario=str(file)))
    assert not runner.train(run, NullListener(), stop_after(1))
    file.write_bytes((FOLDER / "other_values.yaml").read_bytes())

    with pytest.raises(ValueError, match=r"the scenarios .*network\.yaml have changed"):
        runner.train(runs.open_run(run.path), NullListener(), lambda: False)


def test_a_checkpoint_names_layout_and_scenarios(entity_run: Path) -> None:
    networks = TrainedScenarios.from_arrays(runs.open_run(entity_run).checkpoint("last").arrays)
    assert networks is not None
    scenarios = [sample("users_minus2"), sample("users_plus2")]
    assert networks.layout == Layout.of(scenarios)
    assert networks.scenarios == 2
    assert len(networks.hash) == 64


def test_a_policy_with_other_inputs_per_host_is_refused(entity_run: Path) -> None:
    arrays = runs.open_run(entity_run).checkpoint("last").arrays
    content = json.loads(arrays[TRAINED_SCENARIOS].tobytes())
    content["host_features"] = 3
    changed = np.frombuffer(json.dumps(content).encode(), np.uint8)
    with pytest.raises(ValueError, match=r"as this version of cagepool makes them, got \d+ and 3"):
        TrainedScenarios.from_arrays({**arrays, TRAINED_SCENARIOS: changed})


def test_an_entity_policy_plays_networks_of_other_sizes(entity_run: Path) -> None:
    policy = load(entity_run)
    trial = Trial(episodes=2, max_steps=5, scenario=(sample("wide40"), sample("tiny"), CAGE2))
    scores = score_table(policy, trial, ["SleepAgent"])

    assert [score.name for score in scores.scenario_scores] == ["wide40", "tiny", "cage2"]
    assert np.isfinite(scores.sums).all()


def test_a_policy_plays_a_network_the_same_beside_others(entity_run: Path) -> None:
    defender = load(entity_run)
    trial = Trial(episodes=6, max_steps=20, scenario=(sample("users_plus2"), CAGE2))
    together = score_table(defender, trial, ["B_lineAgent"])
    alone = score_table(
        defender,
        Trial(episodes=6, max_steps=20, scenario=(CAGE2,)),
        ["B_lineAgent"],
    )
    np.testing.assert_array_equal(
        together.totals["B_lineAgent"][:, 1], alone.totals["B_lineAgent"][:, 0]
    )


def test_a_padded_policy_plays_the_slots_of_its_training_only(padded_run: Path) -> None:
    policy = load(padded_run)
    defender = policy
    trial = Trial(episodes=2, max_steps=5, scenario=(CAGE2,), layout=policy.layout)
    scores = score_table(defender, trial, ["SleepAgent"])
    assert np.isfinite(scores.sums).all()

    batch = Batch(1, BatchConfig())
    with pytest.raises(ValueError, match="network mlp must play the host slots of its training"):
        defender.begin(batch)
    other = Trial(episodes=2, max_steps=5, scenario=(sample("wide40"),), layout=policy.layout)
    with pytest.raises(ValueError, match="a layout must have a slot per host, got none for"):
        score_table(defender, other, ["SleepAgent"])


def test_a_policy_of_the_built_in_network_refuses_others(tmp_path: Path) -> None:
    policy = load(train_run(tmp_path / "run", SHORT.with_settings(total_episodes=14)))
    trial = Trial(episodes=2, max_steps=5, scenario=(sample("tiny"),))
    with pytest.raises(ValueError, match="plays no other scenario, got tiny"):
        score_table(policy, trial, ["SleepAgent"])


def test_the_agent_for_cyborg_takes_the_network_that_is_played(entity_run: Path) -> None:
    tiny = sample("tiny")
    agent = CybORGAgent(entity_run, scenario=tiny)
    action = agent.get_action(np.zeros(4 * len(tiny.hosts)), len(tiny.actions))
    assert 0 <= action < len(tiny.actions)
    with pytest.raises(ValueError, match=f"must have {4 * len(tiny.hosts)} values"):
        agent.get_action(np.zeros(52), len(tiny.actions))


def test_start_biases_go_to_kinds_of_actions() -> None:
    for config in (ENTITY, PADDED):
        biased = config.with_settings(start_bias="Restore=-20,Sleep=3", n_envs=40)
        with Trainer(biased) as trainer:
            rollout = trainer.collect().rollout
            encoder = trainer.collector.worker.sampler.encoder  # type: ignore[attr-defined]
        played = {
            encoder.games.layout.actions[action].partition(" ")[0]
            for action in encoder.action_indices[rollout.actions[: rollout.steps].ravel()]
        }
        assert "Restore" not in played
        assert "Sleep" in played


def test_networks_are_spread_evenly() -> None:
    scenarios = tuple(CAGE2.with_name(str(number)) for number in range(10))
    assert [scenario.name for scenario in spread_evenly(scenarios, 3)] == ["0", "3", "6"]
    assert spread_evenly(scenarios, 20) == scenarios


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"belief": True}, "features.belief needs the inputs of CAGE-2, got env.scenario"),
        ({"critic_inputs": "true"}, "features.critic_inputs true needs the inputs"),
        ({"action_masking": False}, "features.action_masking off needs the inputs"),
        ({"order": "critical_first"}, "an order needs the inputs of CAGE-2"),
        ({"normalize_observations": True}, "ppo.normalize_observations needs the inputs"),
        ({"backend": "sync"}, "with env.backend auto or native, got cagepool/CAGE2-v0 with sync"),
        ({"backend": "ray"}, "with env.backend auto or native"),
        ({"env": "cyborg"}, "needs cagepool/CAGE2-v0 with env.backend auto or native, got cyborg"),
        ({"learner": "native", "network": "entity"}, "learner native needs ppo.network mlp"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_needs_the_built_in_network_is_refused(
    settings: dict[str, object], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        TrainConfig.from_flat(scenario="cage2", **settings)


def test_the_commands_train_and_evaluate_on_other_networks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, tiny = str(tmp_path / "run"), str(FOLDER / "tiny.yaml")
    train = ["train", "--scenario", FILES, "--network", "entity", "--hidden", "8", "8"]
    short = ["--n-envs", "4", "--total-episodes", "8", "--max-steps", "6", "--update-steps", "6"]
    evals = ["--n-evals", "1", "--n-eval-episodes", "2", "--log", "none", "--threads", "1"]
    assert run_command([*train, *short, *evals, "--out", out]) == 0
    capsys.readouterr()

    few = ["--episodes", "2"]
    assert run_command(["evaluate", out, *few]) == 0  # on the scenarios of the training
    printed = capsys.readouterr().out
    assert "2 episodes per red in each of 2 scenarios" in printed
    for words in ("react-restore: ", "sleep: ", "evaluation.json, games.json"):
        assert words in printed
    assert run_command(["evaluate", out, "--scenario", tiny, *few]) == 0
    printed = capsys.readouterr().out
    for words in (
        "on tiny, edition",
        "  in training (2): ",
        "gap to the scenarios of the training",
    ):
        assert words in printed
    evaluations = runs.open_run(out).all_evaluations()
    assert [one.scenario for one in evaluations] == ["users_minus2,users_plus2", "tiny"]
    assert {one.trained_scenario for one in evaluations} == {"users_minus2,users_plus2"}

    assert run_command(["evaluate", "react-restore", "--scenario", tiny, *few, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["scenarios"][0]["name"] == "tiny"
    assert [row["defender"] for row in content["baselines"]] == ["react-remove", "sleep"]

    assert run_command(["evaluate", out, "--scenario", "cage2", *few]) == 0
    assert "total of the nine cells" in capsys.readouterr().out
    assert run_command(["export", out, str(tmp_path / "export")]) == 2
    assert "has inputs host by host" in capsys.readouterr().err
    assert run_command(["report", out]) == 0
    page = (Path(out) / "report.html").read_text()
    for words in ("<h3>tiny, edition 2.1</h3>", "Total on each scenario", "gap to its training"):
        assert words in page
