"""Training on other networks: what is played, resumed, evaluated and refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from cagepool import runs
from cagepool.cli.main import run as run_command
from cagepool.cyborg import CybORGAgent
from cagepool.evaluate.load import load
from cagepool.evaluate.network_scores import network_scores, spread_evenly
from cagepool.evaluate.policy import PolicyDefender
from cagepool.evaluate.rollout import Trial
from cagepool.evaluate.trained_networks import TRAINED_NETWORKS, TrainedNetworks
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
    networks = TrainedNetworks.from_arrays(runs.open_run(entity_run).checkpoint("last").arrays)
    assert networks is not None
    scenarios = [sample("users_minus2"), sample("users_plus2")]
    assert networks.layout == Layout.of(scenarios)
    assert networks.scenarios == 2
    assert len(networks.hash) == 64


def test_a_policy_with_other_inputs_per_host_is_refused(entity_run: Path) -> None:
    arrays = runs.open_run(entity_run).checkpoint("last").arrays
    content = json.loads(arrays[TRAINED_NETWORKS].tobytes())
    content["host_features"] = 3
    changed = np.frombuffer(json.dumps(content).encode(), np.uint8)
    with pytest.raises(ValueError, match=r"as this version of cagepool makes them, got \d+ and 3"):
        TrainedNetworks.from_arrays({**arrays, TRAINED_NETWORKS: changed})


def test_an_entity_policy_plays_networks_of_other_sizes(entity_run: Path) -> None:
    policy = load(entity_run)
    trial = Trial(episodes=2, max_steps=5, scenarios=(sample("wide40"), sample("tiny"), CAGE2))
    scores = network_scores("entity", PolicyDefender(policy), trial, ["SleepAgent"])

    assert scores.networks == ("wide40", "tiny", "cage2")
    assert np.isfinite(scores.totals).all()


def test_a_policy_plays_a_network_the_same_beside_others(entity_run: Path) -> None:
    defender = PolicyDefender(load(entity_run))
    trial = Trial(episodes=6, max_steps=20, scenarios=(sample("users_plus2"), CAGE2))
    together = network_scores("entity", defender, trial, ["B_lineAgent"])
    alone = network_scores(
        "entity",
        defender,
        Trial(episodes=6, max_steps=20, scenarios=(CAGE2,)),
        ["B_lineAgent"],
    )
    np.testing.assert_array_equal(
        together.games["B_lineAgent"][:, 1], alone.games["B_lineAgent"][:, 0]
    )


def test_a_padded_policy_plays_the_slots_of_its_training_only(padded_run: Path) -> None:
    policy = load(padded_run)
    defender = PolicyDefender(policy)
    trial = Trial(episodes=2, max_steps=5, scenarios=(CAGE2,), layout=policy.layout)
    scores = network_scores("mlp", defender, trial, ["SleepAgent"])
    assert np.isfinite(scores.totals).all()

    batch = Batch(1, BatchConfig())
    with pytest.raises(ValueError, match="network mlp must play the host slots of its training"):
        defender.begin(batch)
    other = Trial(episodes=2, max_steps=5, scenarios=(sample("wide40"),), layout=policy.layout)
    with pytest.raises(ValueError, match="a layout must have a slot per host, got none for"):
        network_scores("mlp", defender, other, ["SleepAgent"])


def test_a_policy_of_the_built_in_network_refuses_others(tmp_path: Path) -> None:
    policy = load(train_run(tmp_path / "run", SHORT.with_settings(total_episodes=14)))
    trial = Trial(episodes=2, max_steps=5, scenarios=(sample("tiny"),))
    with pytest.raises(ValueError, match="plays no other network, got tiny"):
        network_scores("policy", PolicyDefender(policy), trial, ["SleepAgent"])


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
            encoder.networks.layout.actions[action].partition(" ")[0]
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
        ({"belief": True}, "env.scenario does not work with features.belief"),
        ({"critic_inputs": "true"}, "does not work with features.critic_inputs true"),
        ({"action_masking": False}, "does not work with features.action_masking off"),
        ({"order": "critical_first"}, "does not work with an order"),
        ({"normalize_observations": True}, "does not work with ppo.normalize_observations"),
        ({"actions": "core"}, "needs features.actions all, possible, reduced, lean; got core"),
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
    assert run_command(["evaluate", out, "--scenario", FILES, *few]) == 0
    printed = capsys.readouterr().out
    for words in ("2 networks", "react-restore", "sleep", "gap to the training networks: +0.00"):
        assert words in printed
    files = [path.name for path in Path(out).glob("scenarios-*.json")]
    assert len(files) == 1

    assert run_command(["evaluate", "react-restore", "--scenario", tiny, *few, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["scores"]["networks"][0]["name"] == "tiny"
    assert [row["defender"] for row in content["baselines"]] == ["react-remove", "sleep"]

    assert run_command(["evaluate", out, *few]) == 0  # the official protocol
    assert run_command(["export", out, str(tmp_path / "export")]) == 2
    assert "has inputs host by host" in capsys.readouterr().err
    assert run_command(["report", out]) == 0
