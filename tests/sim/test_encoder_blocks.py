"""Policy features host by host: the same facts as for the built-in network, in any layout."""

import numpy as np
import pytest

from cagepool import _core
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.encoder import (
    FACTS,
    HOST_FEATURES,
    PRESENT,
    SHARED_FEATURES,
    SUBNET,
    FeatureConfig,
    FeatureEncoder,
    GameScenarios,
)
from cagepool.sim.masks import action_masks, action_set
from cagepool.types import Bytes, Float32s, Int64s
from tests.scenarios.files import sample

GAMES = 6
WIDTHS = dict(_core.slot_features())
ENDS = dict(zip(WIDTHS, FACTS + np.cumsum([*WIDTHS.values()]), strict=True))
COLUMNS = {name: slice(ENDS[name] - width, ENDS[name]) for name, width in WIDTHS.items()}
ALL_FEATURES = FeatureConfig(clock=True, hosts_restored=True)


def encoder_of(
    scenarios: tuple[Scenario, ...],
    layout: Layout | None = None,
    config: FeatureConfig = ALL_FEATURES,
) -> FeatureEncoder:
    """Encoder of games that play the scenarios in turn."""
    ids = np.arange(GAMES, dtype=np.int32) % len(scenarios)
    games = GameScenarios(scenarios, layout or Layout.of(scenarios), ids)
    return FeatureEncoder(config, games, horizon=100, blocks=True)


def encoded(encoder: FeatureEncoder, observations: Float32s) -> tuple[Float32s, Bytes]:
    features = np.full((GAMES, encoder.size), np.nan, np.float32)
    masks = np.full((GAMES, encoder.n_choices), 7, np.uint8)
    encoder.encode(observations, features, masks)
    return features, masks


def host_blocks(features: Float32s) -> Float32s:
    return features[:, SHARED_FEATURES:].reshape(len(features), -1, HOST_FEATURES)


def random_choices(rng: np.random.Generator, masks: Bytes) -> Int64s:
    choices: Int64s = (rng.random(masks.shape) * masks).argmax(1)
    return choices


def test_the_history_is_that_of_the_built_in_encoder() -> None:
    config = FeatureConfig(clock=True, hosts_restored=True, last_action=False, actions="all")
    own = FeatureEncoder(config, GAMES, horizon=40, blocks=True)
    built_in = FeatureEncoder(config, GAMES, horizon=40)
    batch = Batch(GAMES, BatchConfig(red="mix", max_steps=100))
    batch.reset(np.arange(GAMES, dtype=np.uint64))
    rng = np.random.default_rng(0)
    expected = np.zeros((GAMES, built_in.size), np.float32)
    decoys = [action for action in range(145) if is_fitting_decoy(action)]
    places = [((action - 2) % 13, (action - 2) // 13 - 2) for action in decoys]  # host and kind
    for _ in range(50):
        features, _ = encoded(own, batch.observations)
        built_in.encode(batch.observations, expected, None)
        hosts = host_blocks(features)
        parts = [
            hosts[:, :, COLUMNS["observation"]].reshape(GAMES, -1),
            *(hosts[:, :, COLUMNS["scans"].start + column] for column in range(3)),
            np.stack([hosts[:, host, COLUMNS["decoys"].start + kind] for host, kind in places], 1),
            features[:, :1],
            features[:, 1:17],
            hosts[:, :, COLUMNS["restored"].start],
        ]
        np.testing.assert_array_equal(np.concatenate(parts, 1), expected)
        actions = rng.integers(145, size=GAMES)
        batch.step(actions)
        for encoder in (own, built_in):
            encoder.update(actions, batch.observations)
    assert hosts[:, :, COLUMNS["decoys"]].any()
    assert hosts[:, :, COLUMNS["restored"]].any()


def is_fitting_decoy(action: int) -> bool:
    is_decoy = 2 + 13 * 2 <= action < 2 + 13 * 10
    return is_decoy and bool(action_masks(np.zeros((1, 13), np.uint16))[0, action])


@pytest.mark.parametrize("actions", ["all", "possible", "reduced", "core", "lean"])
def test_choices_on_the_built_in_network_are_those_of_its_action_set(actions: str) -> None:
    config = FeatureConfig(actions=actions)  # type: ignore[arg-type] # from the parameters
    own = FeatureEncoder(config, GAMES, horizon=40, blocks=True)
    _, masks = encoded(own, np.zeros((GAMES, 52), np.float32))

    allowed = own.action_indices[masks[0] == 1]
    never = action_set(actions)[~action_masks(np.zeros((1, 13), np.uint16))[0, action_set(actions)]]
    assert sorted(allowed.tolist()) == sorted({*action_set(actions)} - {*never})


def test_masks_follow_the_decoys_in_the_game() -> None:
    own = FeatureEncoder(FeatureConfig(actions="possible"), GAMES, horizon=40, blocks=True)
    batch = Batch(GAMES, BatchConfig(max_steps=100))
    batch.reset(np.arange(GAMES, dtype=np.uint64))
    rng = np.random.default_rng(1)
    for _ in range(80):
        _, masks = encoded(own, batch.observations)
        expected = action_masks(batch.true_state["decoys"])
        np.testing.assert_array_equal(masks, expected[:, own.action_indices])
        actions = own.action_indices[random_choices(rng, masks)]
        batch.step(actions)
        own.update(actions, batch.observations)


def test_a_host_has_the_same_features_in_every_layout() -> None:
    scenarios = (sample("users_plus2"), CAGE2)
    wide = encoder_of(scenarios)
    narrow = encoder_of((CAGE2,))
    wide_slots = CAGE2.slots(wide.games.layout)
    rng = np.random.default_rng(2)
    of_cage2 = np.arange(GAMES) % 2 == 1
    for _ in range(30):
        observations = rng.integers(2, size=(GAMES, 52)).astype(np.float32)
        padded = np.zeros((GAMES, 4 * wide.slots), np.float32)
        padded.reshape(GAMES, -1, 4)[:, wide_slots] = observations.reshape(GAMES, -1, 4)
        narrow_features, narrow_masks = encoded(narrow, observations)
        wide_features, wide_masks = encoded(wide, padded)
        hosts = host_blocks(wide_features)[of_cage2]

        np.testing.assert_array_equal(hosts[:, wide_slots], host_blocks(narrow_features)[of_cage2])
        np.testing.assert_array_equal(
            wide_features[of_cage2, :SHARED_FEATURES], narrow_features[of_cage2, :SHARED_FEATURES]
        )
        assert not np.delete(hosts, wide_slots, axis=1).any()
        kinds = wide_masks[of_cage2, 1:].reshape(3, -1, wide.slots)
        np.testing.assert_array_equal(
            kinds[:, :, wide_slots], narrow_masks[of_cage2, 1:].reshape(3, -1, narrow.slots)
        )
        assert not np.delete(kinds, wide_slots, axis=2).any()

        choices = random_choices(rng, narrow_masks)
        names = [CAGE2.actions[action] for action in narrow.action_indices[choices]]
        narrow.update(narrow.action_indices[choices], observations)
        wide.update(np.array([wide.games.layout.actions.index(n) for n in names]), padded)


def test_static_features_describe_the_network() -> None:
    encoder = encoder_of((sample("users_minus2"), CAGE2))
    features, _ = encoded(encoder, np.zeros((GAMES, 4 * encoder.slots), np.float32))
    hosts = host_blocks(features)

    assert hosts[:, :, PRESENT].sum(1).tolist() == [11, 13] * 3
    slots = CAGE2.slots(encoder.games.layout)
    np.testing.assert_array_equal(16 * hosts[1, slots, SUBNET], CAGE2.subnet_of)


def test_an_exploit_shows_on_the_hosts_that_it_reveals() -> None:
    encoder = encoder_of((CAGE2,))
    observations = np.zeros((GAMES, 52), np.float32)
    user1 = CAGE2.host_index("User1")
    observations[0, 4 * user1 : 4 * user1 + 2] = 1
    encoder.update(np.zeros(GAMES, np.int64), observations)
    links = host_blocks(encoded(encoder, observations)[0])[:, :, COLUMNS["links"]]

    assert CAGE2.hosts[int(links[0, :, 0].argmax())] == "Enterprise1"
    assert links[0].sum() == 2
    assert not links[1:].any()


def test_misinform_is_masked_when_no_port_is_left() -> None:
    scenario = sample("cage1_misinform")
    encoder = encoder_of((scenario,))
    observations = np.zeros((GAMES, 4 * len(scenario.hosts)), np.float32)
    action = scenario.action_index("Misinform Enterprise0")
    choice = int(np.flatnonzero(encoder.action_indices == action)[0])
    allowed = []
    for _ in range(5):
        allowed.append(int(encoded(encoder, observations)[1][0, choice]))
        encoder.update(np.full(GAMES, action), observations)

    assert allowed == [1, 1, 1, 1, 0]  # port 22 is taken by the host itself
    encoder.update(np.full(GAMES, scenario.action_index("Restore Enterprise0")), observations)
    assert encoded(encoder, observations)[1][0, choice] == 1


def test_a_group_that_is_off_is_zero() -> None:
    off = FeatureConfig(scan_memory=False, decoys_placed=False, last_action=False, time_left=False)
    encoder = encoder_of((CAGE2,), config=off)
    observations = np.ones((GAMES, 52), np.float32)
    encoder.update(np.full(GAMES, CAGE2.action_index("DecoyApache User1")), observations)
    features, _ = encoded(encoder, observations)
    hosts = host_blocks(features)

    for columns in (COLUMNS["scans"], COLUMNS["links"], COLUMNS["decoys"], COLUMNS["last_action"]):
        assert not hosts[:, :, columns].any()
    assert not features[:, :19].any()
    assert hosts[:, :, COLUMNS["observation"]].all()


def test_a_restored_encoder_goes_on_as_if_it_had_not_stopped() -> None:
    scenarios = (CAGE2, sample("users_plus2"))
    first, second = encoder_of(scenarios), encoder_of(scenarios)
    rng = np.random.default_rng(3)
    observations = rng.integers(2, size=(40, GAMES, 4 * first.slots)).astype(np.float32)
    actions = rng.integers(len(first.games.layout.actions), size=(40, GAMES))
    for step in range(20):
        first.update(actions[step], observations[step])
    second.restore(first.state())
    for step in range(20, 40):
        for encoder in (first, second):
            encoder.update(actions[step], observations[step])
        for left, right in zip(
            encoded(first, observations[step]), encoded(second, observations[step]), strict=True
        ):
            np.testing.assert_array_equal(left, right)

    with pytest.raises(ValueError, match="the saved history must have the shape"):
        first.restore({})


def test_several_scenarios_have_no_flat_features_and_only_cage2_has_a_belief() -> None:
    scenario = sample("users_plus2")
    games = GameScenarios((scenario, CAGE2), Layout.of([scenario, CAGE2]), np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="games of one scenario, got 2: use blocks"):
        FeatureEncoder(FeatureConfig(), games, horizon=9)
    with pytest.raises(ValueError, match="belief is a feature of CAGE-2"):
        FeatureEncoder(FeatureConfig(belief=True), games, horizon=9, blocks=True)


def test_flat_rows_of_another_scenario_have_the_numbers_of_its_blocks() -> None:
    scenario = sample("cage1_misinform")
    games = GameScenarios((scenario,), Layout.of([scenario]), np.zeros(GAMES, np.int32))
    config = FeatureConfig(hosts_restored=True, actions="possible", decoys_placed=False)
    flat = FeatureEncoder(config, games, horizon=40)
    blocks = FeatureEncoder(config, games, horizon=40, blocks=True)
    rng = np.random.default_rng(4)
    for _ in range(30):
        observations = rng.integers(2, size=(GAMES, 4 * flat.slots)).astype(np.float32)
        rows, masks = encoded(flat, observations)
        in_blocks, block_masks = encoded(blocks, observations)
        hosts = host_blocks(in_blocks)
        scans = [hosts[:, :, COLUMNS["scans"].start + column] for column in range(3)]
        expected = np.concatenate([observations, *scans], 1)
        np.testing.assert_array_equal(rows[:, : expected.shape[1]], expected)
        np.testing.assert_array_equal(
            rows[:, -flat.slots :], hosts[:, :, COLUMNS["restored"].start]
        )
        allowed = [{*flat.action_indices[mask == 1].tolist()} for mask in masks]
        assert allowed == [{*blocks.action_indices[mask == 1].tolist()} for mask in block_masks]
        actions = rng.integers(len(games.layout.actions), size=GAMES)
        for encoder in (flat, blocks):
            encoder.update(actions, observations)


def test_observations_of_another_width_are_refused() -> None:
    encoder = encoder_of((CAGE2,))

    with pytest.raises(ValueError, match=r"observations must have 52 columns, got 48"):
        encoded(encoder, np.zeros((GAMES, 48), np.float32))
