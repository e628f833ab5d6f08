"""Environments of scenarios: one, several, files, drawn per episode."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import cagepool
from cagepool import Scenario, make_vec
from cagepool.envs import Cage2Env, NativeVectorEnv
from cagepool.envs.feature_wrapper import FeatureVectorEnv
from cagepool.render.drawing import MARGIN, PANEL_HEIGHT
from cagepool.render.plan import CARD, CELL, COLORS, wide_layout
from cagepool.scenarios import CAGE2, Layout
from cagepool.sim.encoder import FeatureConfig
from tests.envs.contract import BACKENDS, MODES, AnyVectorEnv, assert_same, play, sync
from tests.scenarios.files import FOLDER, SAMPLES, sample
from tests.sim.games import SEEDS

HORIZON = 6
MIXED = ("tiny", "linear4", "cage1_misinform", "cage2_rebuilt")
FEW = tuple(map(sample, MIXED))


def playable_red(scenario: Scenario) -> str:
    reds = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
    return next(red for red in reds if scenario.red_refusal(red) is None)


def started(num_envs: int, scenario: Any, **options: Any) -> NativeVectorEnv:
    envs: NativeVectorEnv = make_vec(num_envs, scenario=scenario, **options)
    envs.reset(seed=1)
    return envs


def random_actions(envs: AnyVectorEnv, steps: int, seed: int = 0) -> Any:
    count = int(envs.single_action_space.n)  # type: ignore[attr-defined]
    return np.random.default_rng(seed).integers(0, count, (steps, envs.num_envs))


CASES: dict[str, dict[str, Any]] = {
    "one": {"scenario": FEW[0], "order": "critical_first"},
    "per env": {"scenario": FEW, "action_mask": True, "moves": True},
    "per episode": {"scenario": FEW, "scenario_per": "episode", "action_mask": True, "moves": True},
    "graph": {"scenario": FEW, "scenario_per": "episode", "observation": "graph"},
    "graph of CAGE-2": {"observation": "graph", "action_mask": True},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", MODES)
def test_the_trajectory_is_that_of_single_environments(case: str, mode: str) -> None:
    make: Callable[..., AnyVectorEnv] = BACKENDS["native"]
    options = {"max_steps": HORIZON, "green": True, **CASES[case]}
    envs, reference = make(5, mode, **options), sync(5, mode, **options)
    assert envs.observation_space == reference.observation_space
    assert envs.action_space == reference.action_space
    assert_same(envs.reset(seed=3), reference.reset(seed=3))
    actions = random_actions(envs, 3 * HORIZON)
    assert_same(play(envs, actions), play(reference, actions))


@pytest.mark.parametrize(("backend", "case"), [("workers", "per env"), ("workers", "graph"),
                                               ("pipes", "per episode")])  # fmt: skip
def test_processes_play_the_same_games(backend: str, case: str) -> None:
    options = {"max_steps": HORIZON, **CASES[case]}
    envs, reference = BACKENDS[backend](4, "same_step", **options), sync(4, "same_step", **options)
    try:
        assert_same(envs.reset(seed=3), reference.reset(seed=3))
        actions = random_actions(envs, 2 * HORIZON)
        assert_same(play(envs, actions), play(reference, actions))
    finally:
        envs.close()


def test_true_states_of_different_scenarios_come_from_workers() -> None:
    with make_vec(4, backend="workers", scenario=FEW, true_state="every", workers=1) as envs:
        envs.reset(seed=0)
        states = envs.true_state
        entries = [scenario.entry for scenario in FEW]
        assert [int(states["access"][game, entry]) for game, entry in enumerate(entries)] == [2] * 4


@pytest.mark.parametrize("name", SAMPLES)
def test_spaces_of_one_scenario_are_those_of_cyborg(name: str) -> None:
    scenario = sample(name)
    env = Cage2Env(scenario=scenario, red=playable_red(scenario))
    assert env.observation_space.shape == (4 * len(scenario.hosts),)
    assert env.action_space == gym.spaces.Discrete(len(scenario.actions))
    observation, _ = env.reset(seed=0)
    assert not observation.any()
    assert env.scenario == scenario


def test_a_host_keeps_its_slot_in_all_scenarios() -> None:
    envs = started(4, FEW, red="SleepAgent")
    layout = Layout.of(FEW)
    assert envs.single_observation_space.shape == (4 * len(layout.slots),)
    decoy = layout.actions.index("DecoyTomcat Op_Server0")
    restore = layout.actions.index("Restore Op_Server0")
    moves = envs.step(np.array([decoy, decoy, decoy, decoy]))
    assert not moves[0].any()
    placed = envs.true_state.decoys
    for game, scenario in enumerate(FEW):
        host = scenario.host_index("Op_Server0")
        has_kind = "DecoyTomcat" in scenario.action_kinds
        assert bool(placed[game, host]) == has_kind
        assert placed[game].astype(bool).sum() == has_kind
    _, rewards, *_ = envs.step(np.full(4, restore))
    assert rewards.tolist() == [-1.0] * 4
    assert envs.describe(0) == "blue: Restore Op_Server0, success; red: Sleep"


def test_an_action_on_an_absent_host_does_nothing_and_is_masked() -> None:
    envs = started(4, FEW, red="SleepAgent", action_mask=True)
    layout = Layout.of(FEW)
    absent = layout.actions.index("Restore Plant0")  # a host of linear4
    assert envs.action_masks()[:, absent].tolist() == [False, True, False, False]
    before = envs.save(range(4))
    _, rewards, _, _, infos = envs.step(np.full(4, absent))
    assert rewards.tolist() == [0.0, -1.0, 0.0, 0.0]
    assert infos["action_mask"].shape == (4, len(layout.actions))
    assert "Restore Plant0" in envs.describe(0)
    assert before[1] != envs.save([1])[0]


@pytest.mark.parametrize("name", SAMPLES)
def test_masks_forbid_what_fails_and_nothing_else(name: str) -> None:
    """Every action from the same states: FALSE exactly if it is masked, cost and table apart."""
    scenario = sample(name)
    count = len(scenario.actions)
    source = started(1, scenario, red="SleepAgent", max_steps=100)
    envs = started(count, scenario, red="SleepAgent", max_steps=100)
    rng = np.random.default_rng(len(name))
    for _ in range(4):
        blob = source.save([0])[0]
        envs.restore(range(count), [blob] * count)
        masks = envs.action_masks()[0]
        envs.step(np.arange(count))
        np.testing.assert_array_equal(envs.batch.moves["blue_success"] != 0, masks)
        for _ in range(8):
            source.step(rng.choice(np.flatnonzero(source.action_masks()[0]), 1))


@settings(max_examples=10)
@given(seed=SEEDS, red=st.sampled_from(["B_lineAgent", "RedMeanderAgent"]))
def test_results_do_not_depend_on_the_layout(seed: int, red: str) -> None:
    alone, mixed = started(1, FEW[1], red=red), started(2, FEW[:2], red=red)
    alone.reset(seed=[seed])
    mixed.reset(seed=[0, seed])
    layout = Layout.of(FEW[:2])
    slots = FEW[1].slots(layout)
    names = np.random.default_rng(seed).choice(np.array(FEW[1].actions), 20)
    for name in names:
        own = alone.step(np.array([FEW[1].action_index(name)]))
        padded = mixed.step(np.array([0, layout.actions.index(name)]))
        rows = padded[0][1].reshape(-1, 4)
        np.testing.assert_array_equal(own[0][0].reshape(-1, 4), rows[slots])
        assert own[1][0] == padded[1][1]


def test_each_episode_draws_its_scenario() -> None:
    envs = started(64, FEW, scenario_per="episode", max_steps=2, red="SleepAgent")
    drawn = []
    for _ in range(40):
        envs.step(np.zeros(64, np.int64))
        drawn.append(envs.scenario_ids.copy())
    counts = np.bincount(np.concatenate(drawn[::3]), minlength=len(FEW))
    assert counts.min() > 0.8 * counts.mean()


@pytest.mark.parametrize("observation", ["flat", "graph"])
def test_gymnasium_accepts_the_environment(observation: str) -> None:
    env = gym.make(
        "cagepool/CAGE2-v0", scenario=FOLDER / "tiny.yaml", observation=observation, red="mix"
    )
    check_env(env.unwrapped, skip_render_check=True)


def test_graphs_are_those_of_the_games_scenarios() -> None:
    envs = make_vec(4, scenario=FEW, observation="graph", red="SleepAgent")
    graphs: Any
    graphs, _ = envs.reset(seed=0)
    assert graphs in envs.observation_space
    layout = Layout.of(FEW)
    for game, scenario in enumerate(FEW):
        mask = graphs["node_mask"][game]
        slots = scenario.slots(layout)
        assert [*np.flatnonzero(mask[: len(layout.slots)])] == sorted(slots.tolist())
        assert mask[len(layout.slots) :].sum() == len(scenario.subnets)
        pairs = graphs["edges"][game][graphs["edge_kinds"][game] == 2]
        revealed = {
            (slots[host], slots[other])
            for host, others in enumerate(scenario.reveals_ip)
            for other in others
            if other != host
        }
        assert {(int(start), int(end)) for start, end in pairs} == revealed
    np.testing.assert_array_equal(graphs["action_mask"], envs.action_masks())


def test_a_generator_a_folder_and_a_suite_give_scenarios(tmp_path: Path) -> None:
    for name in ("tiny", "flat"):
        (tmp_path / f"{name}.yaml").write_bytes((FOLDER / f"{name}.yaml").read_bytes())
    assert [one.name for one in make_vec(2, scenario=tmp_path).scenarios] == ["flat", "tiny"]
    assert make_vec(2, scenario=str(tmp_path / "tiny.yaml")).scenarios == (sample("tiny"),)
    assert {*make_vec(2, scenario=lambda _: sample("tiny")).scenarios} == {sample("tiny")}
    assert make_vec(1, scenario="cage2").scenarios == (CAGE2,)


def test_an_environment_can_be_copied_and_shown() -> None:
    env = cagepool.make(scenario=sample("wide64"), render_mode="ansi", red="B_lineAgent")
    env.reset(seed=0)
    for _ in range(10):
        env.step(0)
    twin = pickle.loads(pickle.dumps(env))
    np.testing.assert_array_equal(twin.true_state(), env.true_state())
    assert "scenario wide64" in str(env.render())
    assert repr(env).startswith("Cage2Env(red='B_lineAgent', edition='2.1', max_steps=100, scen")
    np.testing.assert_array_equal(twin.step(0)[0], env.step(0)[0])


def test_a_snapshot_of_another_scenario_is_refused() -> None:
    envs, other = started(2, sample("tiny")), started(2, sample("flat"))
    before = envs.save([0, 1])
    with pytest.raises(ValueError, match=r"network|scenario"):
        envs.restore([0], other.save([0]))
    assert envs.save([0, 1]) == before
    mixed = started(4, FEW)
    with pytest.raises(ValueError, match=r"network|scenario"):
        mixed.restore([0], other.save([0]))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"scenario": 7}, "scenario must be a Scenario, a scenario file"),
        ({"scenario": "no/such.yaml"}, "no/such.yaml"),
        ({"scenario": []}, "at least one scenario"),
        ({"scenario": sample("entry_user3")}, "entry_user3 cannot be played: .*User0"),
        ({"scenario": sample("tiny"), "scenario_per": "game"}, "scenario_per must be one of"),
        ({"scenario": sample("tiny"), "observation": "image"}, "observation must be 'flat' or"),
        ({"observation": "graph", "observation_dtype": "uint8"}, "must be float32 for graphs"),
        ({"scenario": sample("flat"), "layout": Layout.of([sample("tiny")])}, "a slot per host"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_sentence(
    options: dict[str, Any], sentence: str
) -> None:
    for make in (lambda: make_vec(2, **options), lambda: Cage2Env(**options)):
        with pytest.raises((ValueError, TypeError), match=sentence) as caught:
            make()
        assert "\n" not in str(caught.value)


def test_a_reward_function_sees_the_parts_and_names_of_each_scenario() -> None:
    def restores_of_own_hosts(step: Any) -> Any:
        np.testing.assert_array_equal(step.part_tenths.sum(axis=1) / 10, step.reward)
        assert {*step.moves.blue_host} == {"Op_Server0"}
        assert step.scenario_ids.tolist() == [0, 1, 2, 3]
        return step.parts["restores"] * 2

    envs = started(4, FEW, reward=restores_of_own_hosts, red="SleepAgent")
    restore = Layout.of(FEW).actions.index("Restore Op_Server0")
    assert envs.step(np.full(4, restore))[1].tolist() == [-2.0] * 4


def test_the_feature_wrapper_refuses_other_scenarios_of_the_same_size() -> None:
    envs: Any = make_vec(2, scenario=sample("other_links"), autoreset="same_step")
    with pytest.raises(ValueError, match=r"features need CAGE-2, got the scenario .*other_li"):
        FeatureVectorEnv(envs, FeatureConfig())


def test_frames_of_a_batch_have_one_size_and_show_each_scenario() -> None:
    scenarios = (sample("tiny"), sample("wide40"))
    envs = started(2, scenarios, render_mode="rgb_array", red="SleepAgent")
    frames: Any = envs.render()
    assert frames[0].shape == frames[1].shape
    assert not any(size % 16 for size in frames[0].shape[:2])
    for frame, scenario in zip(frames, scenarios, strict=True):
        x, y = wide_layout(scenario).hosts[scenario.hosts[scenario.entry]]
        corner = (x + CARD["padding"] + CELL["width"] - 4, y + CELL["y"] + 4)
        column, row = round(corner[0]) + MARGIN, round(corner[1]) + 2 * MARGIN + PANEL_HEIGHT
        assert "#" + bytes(frame[row, column]).hex() == COLORS["privileged"][0]


@pytest.mark.parametrize("name", ["tiny", "renamed_twin", "wide64"])
def test_the_dictionary_has_the_hosts_of_the_scenario(name: str) -> None:
    scenario = sample(name)
    envs = started(2, (sample("flat"), scenario), red="SleepAgent")
    assert [*envs.true_state_dict(1)] == ["success", *scenario.hosts]
