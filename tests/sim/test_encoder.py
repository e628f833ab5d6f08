"""Policy features and masks, against a slow reference implementation."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cagepool import _core
from cagepool.sim import ActionMasks, Batch, action_masks, compliance, dtypes
from cagepool.sim.encoder import FeatureConfig, FeatureEncoder
from cagepool.sim.masks import ACTION_SETS, ActionSet, action_set
from cagepool.sim.names import ACTIONS, DECOYS, HOST_TYPES, HOSTS
from tests.sim.games import int64s, start_batch

GAMES, HORIZON, STEPS = 6, 14, 32
KINDS = ("Sleep", "Monitor", "Analyse", "Remove", "Decoy", "Restore")
GROUPS = (
    "observation",
    "scan_memory",
    "decoys_placed",
    "last_action",
    "time_left",
    "order_input",
    "clock",
    "hosts_restored",
)
ORDER = "reverse"


def order_one_hot(order: str) -> NDArray[np.float32]:
    """The 25 features of an order, row by row: row = position, column = type."""
    columns = [HOST_TYPES.index(kind) for kind in compliance.parse_order(order)]
    return np.eye(len(HOST_TYPES), dtype=np.float32)[columns].ravel()


class ReferenceHistory:
    """History of one game, written with sets of names."""

    def __init__(self, choices: NDArray[np.int64]) -> None:
        self.names = [ACTIONS[choice] for choice in choices]
        self.reset()

    def reset(self) -> None:
        self.ever: set[str] = set()
        self.exploited: set[str] = set()
        self.latest: set[str] = set()
        self.played: list[str] = []

    def update(self, action: str, seen: NDArray[Any]) -> None:
        bits = {host: tuple(seen[4 * i : 4 * i + 2].tolist()) for i, host in enumerate(HOSTS)}
        active = {host for host, pair in bits.items() if pair != (0, 0)}
        self.ever |= active
        self.exploited |= {host for host, pair in bits.items() if pair == (1, 1)}
        self.latest = active or self.latest
        self.played.append(action)

    def groups(self, decoys: NDArray[Any]) -> dict[str, list[float]]:
        """Inputs by group; `decoys` are those that are really there."""
        last = self.played[-1] if self.played else ""
        return {
            "scan_memory": [
                float(host in hosts)
                for hosts in (self.ever, self.exploited, self.latest)
                for host in HOSTS
            ],
            "decoys_placed": [
                float(bool(decoys[HOSTS.index(host)] & 1 << DECOYS.index(decoy)))
                for decoy, host in self.possible_decoys()
            ],
            "last_action": [
                *(float(last.startswith(kind)) for kind in KINDS),
                *(float(last.endswith(f" {host}")) for host in HOSTS),
            ],
            "time_left": [1 - len(self.played) / HORIZON],
            "order_input": order_one_hot(ORDER).tolist(),
            "clock": self.clock(),
            "hosts_restored": [float(f"Restore {host}" in self.played) for host in HOSTS],
        }

    def clock(self) -> list[float]:
        step = len(self.played)
        nearness = [2 ** (-(HORIZON - step) / scale) for scale in (2, 5, 12)]
        lengths = [float(step >= length) for length in (30, 50)]
        return [step / HORIZON, *nearness, *lengths, *(float(step == i) for i in range(10))]

    def possible_decoys(self) -> list[tuple[str, str]]:
        fits = {ACTIONS[number] for number in action_set("possible")}
        named = [name.split() for name in self.names if name.startswith("Decoy") and name in fits]
        return [(decoy.removeprefix("Decoy"), host) for decoy, host in named]


def configs(names: ActionSet) -> list[FeatureConfig]:
    """Each group on and off, beside every pair of settings of two others."""
    rows = orthogonal_flags(len(GROUPS))
    chosen: list[dict[str, Any]] = [dict(zip(GROUPS, row, strict=True)) for row in rows]
    return [FeatureConfig(actions=names, **flags) for flags in chosen]


def orthogonal_flags(count: int) -> list[list[bool]]:
    """16 rows in which any three of up to 8 columns have all combinations (an orthogonal array)."""
    columns = [0b1000, 0b0100, 0b0010, 0b0001, 0b1110, 0b1101, 0b1011, 0b0111][:count]
    return [[(row & column).bit_count() % 2 == 1 for column in columns] for row in range(16)]


def played_actions(rng: np.random.Generator) -> NDArray[np.int64]:
    """Mostly decoys and restores on few hosts, so that they meet."""
    busy = [i for i, name in enumerate(ACTIONS) if name.endswith(("User1", "Enterprise1"))]
    return np.where(rng.random(GAMES) < 0.7, rng.choice(busy, GAMES), rng.integers(145, size=GAMES))


def check_rows(
    encoders: list[FeatureEncoder], references: list[ReferenceHistory], batch: Batch
) -> None:
    check(encoders, references, batch.observations, batch.true_state["decoys"])


def check(
    encoders: list[FeatureEncoder],
    references: list[ReferenceHistory],
    seen: NDArray[np.float32],
    decoys: NDArray[Any],
) -> None:
    groups = [reference.groups(row) for reference, row in zip(references, decoys, strict=True)]
    for encoder in encoders:
        rows = np.full((GAMES, encoder.size), -1, np.float32)
        masks = np.full((GAMES, encoder.n_choices), 9, np.uint8)
        encoder.encode(seen, rows, masks)
        wanted = [name for name in GROUPS if getattr(encoder.config, name)]
        expected = [
            [x for name in wanted for x in {**of_game, "observation": row.tolist()}[name]]
            for row, of_game in zip(seen, groups, strict=True)
        ]
        np.testing.assert_allclose(rows, expected, rtol=1e-6)
        np.testing.assert_array_equal(masks, action_masks(decoys)[:, encoder.action_indices])


@pytest.mark.parametrize("names", ACTION_SETS)
def test_features_and_masks_are_those_of_the_history_in_every_combination(names: ActionSet) -> None:
    rng = np.random.default_rng(3)
    batch = start_batch(GAMES, red="mix", max_steps=HORIZON, autoreset="same_step")
    encoders = [FeatureEncoder(config, GAMES, horizon=HORIZON) for config in configs(names)]
    references = [ReferenceHistory(action_set(names)) for _ in range(GAMES)]
    for encoder in encoders:
        encoder.set_order(ORDER)
    masks = ActionMasks(GAMES)
    check_rows(encoders, references, batch)
    for _ in range(STEPS):
        played = played_actions(rng)
        batch.step(played)
        masks.update(played)
        ended = np.flatnonzero(batch.truncations)
        last = batch.observations.copy()
        last[ended] = batch.final_observations[ended]
        for encoder in encoders:
            encoder.update(played, last)
        for reference, action, row in zip(references, played, last, strict=True):
            reference.update(ACTIONS[action], row)
        check(encoders, references, last, masks.decoys)
        masks.reset(ended)
        for encoder in encoders:
            encoder.reset(ended)
        for game in ended:
            references[game].reset()
        check_rows(encoders, references, batch)
    assert any(reference.exploited for reference in references)


def test_a_decoy_can_be_placed_in_play_exactly_if_its_choice_is_not_masked() -> None:
    rng = np.random.default_rng(5)
    batch = start_batch(GAMES, red="meander", max_steps=HORIZON, autoreset="same_step")
    encoder = FeatureEncoder(FeatureConfig(actions="all"), GAMES, horizon=HORIZON)
    rows = np.zeros((GAMES, encoder.size), np.float32)
    masks = np.zeros((GAMES, 145), np.uint8)
    is_decoy = np.array([name.startswith("Decoy") for name in ACTIONS])
    outcomes: list[bool] = []
    for _ in range(STEPS):
        encoder.encode(batch.observations, rows, masks)
        played = played_actions(rng)
        batch.step(played)
        decoys = is_decoy[played]
        worked = batch.moves["blue_success"][decoys] == 1
        np.testing.assert_array_equal(worked, masks[np.arange(GAMES), played][decoys] == 1)
        outcomes += worked.tolist()
        encoder.update(played, batch.observations)
        encoder.reset(np.flatnonzero(batch.truncations))
    assert {*outcomes} == {True, False}


def order_encoder(games: int) -> FeatureEncoder:
    """Encoder whose only features beside the observation are those of the order."""
    config = FeatureConfig(
        scan_memory=False,
        decoys_placed=False,
        last_action=False,
        time_left=False,
        order_input=True,
    )
    return FeatureEncoder(config, games, horizon=10)


def test_the_features_of_an_order_are_one_hot_by_position() -> None:
    order = compliance.NAMED_ORDERS["reverse"]
    encoder = order_encoder(1)
    encoder.set_order(order)
    rows = np.zeros((1, encoder.size), np.float32)
    encoder.encode(zeros(1, _core.OBSERVATION_SIZE), rows, None)

    table = rows[0, _core.OBSERVATION_SIZE :].reshape(5, 5)
    assert [HOST_TYPES[column] for column in table.argmax(axis=1)] == order.split(">")
    assert table.sum() == 5


def test_every_order_is_shown_as_its_one_hot_and_kept_when_an_episode_begins() -> None:
    encoder = order_encoder(len(compliance.ALL_ORDERS))
    seen = np.zeros((len(compliance.ALL_ORDERS), _core.OBSERVATION_SIZE), np.float32)
    for game, order in enumerate(compliance.ALL_ORDERS):
        encoder.set_order(order, int64s([game]))
    encoder.update(np.zeros(len(seen), np.int64), seen)
    encoder.reset(int64s([3, 60]))
    encoder.reset()
    rows = np.zeros((len(seen), encoder.size), np.float32)
    encoder.encode(seen, rows, None)

    expected = np.stack([order_one_hot(order) for order in compliance.ALL_ORDERS])
    np.testing.assert_array_equal(rows[:, _core.OBSERVATION_SIZE :], expected)


def test_games_that_begin_anew_do_not_disturb_others() -> None:
    encoder = FeatureEncoder(FeatureConfig(), 3, horizon=10)
    seen = np.ones((3, _core.OBSERVATION_SIZE), np.float32)
    encoder.update(int64s([133, 133, 133]), seen)
    before = encoder.history.copy()

    encoder.reset(int64s([1]))

    np.testing.assert_array_equal(encoder.history[[0, 2]], before[[0, 2]])
    assert not dtypes.as_bytes(encoder.history)[1].any()
    assert dtypes.as_bytes(before)[1].any()


def test_smaller_sets_of_actions_leave_out_what_they_say() -> None:
    names = {which: [ACTIONS[i] for i in action_set(which)] for which in ACTION_SETS}

    assert names["all"] == list(ACTIONS)
    assert {*names["all"]} > {*names["possible"]} > {*names["reduced"]} > {*names["core"]}
    assert all(name.startswith("Decoy") for name in {*names["all"]} - {*names["possible"]})
    left_out = {*names["possible"]} - {*names["reduced"]}
    assert all(name.endswith(("Monitor", " Defender", " User0")) for name in left_out)
    assert not any(name.endswith(("Monitor", " Defender", " User0")) for name in names["reduced"])
    assert all("Op_Host" in name for name in {*names["reduced"]} - {*names["core"]})
    assert not any("Op_Host" in name for name in names["core"])
    assert "Sleep" in names["core"]


def test_the_lean_set_has_the_actions_of_good_defenders() -> None:
    names = [ACTIONS[i] for i in action_set("lean")]

    assert len(names) == 33
    by_kind = {kind: [name for name in names if name.startswith(kind)] for kind in KINDS}
    hosts = {kind: {name.split()[-1] for name in found} for kind, found in by_kind.items()}
    assert names[0] == "Sleep"
    assert not by_kind["Monitor"]
    assert not by_kind["Analyse"]
    removable = {f"User{i}" for i in range(1, 5)} | {f"Enterprise{i}" for i in range(3)}
    assert hosts["Remove"] == removable
    assert hosts["Restore"] == removable | {"Op_Server0"}
    assert hosts["Decoy"] == hosts["Restore"] - {"User4"}
    assert len(by_kind["Decoy"]) == 17


def test_an_unknown_set_of_actions_is_refused() -> None:
    with pytest.raises(ValueError, match="one of all, possible, reduced, core, lean; got 'few'"):
        action_set("few")


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda encoder: encoder.update(int64s([145, 0]), zeros(2, 52)),
            IndexError,
            "one of the layout",
        ),
        (
            lambda encoder: encoder.update(int64s([-1, 0]), zeros(2, 52)),
            IndexError,
            "one of the layout",
        ),
        (lambda encoder: encoder.update(int64s([0]), zeros(2, 52)), ValueError, "2 rows, got 1"),
        (lambda encoder: encoder.update(int64s([0, 0]), zeros(2, 51)), ValueError, "52 columns"),
        (
            lambda encoder: encoder.encode(zeros(2, 51), zeros(2, encoder.size), None),
            ValueError,
            "52 columns",
        ),
        (
            lambda encoder: encoder.encode(zeros(2, 52), zeros(2, 3), None),
            ValueError,
            r"features must have \d+ columns, got 3",
        ),
        (
            lambda encoder: encoder.encode(
                zeros(2, 52), zeros(2, encoder.size), np.zeros((2, 1), np.uint8)
            ),
            ValueError,
            r"masks must have \d+ columns, got 1",
        ),
        (
            lambda encoder: FeatureEncoder(encoder.config, 2, horizon=0),
            ValueError,
            "horizon must be at least 1",
        ),
    ],
    ids=["beyond", "below", "too few", "narrow", "narrow write", "size", "masks", "horizon"],
)
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], sentence: str) -> None:
    encoder = FeatureEncoder(FeatureConfig(), 2, horizon=10)
    with pytest.raises(error, match=sentence):
        call(encoder)


def test_an_order_that_does_not_exist_is_refused() -> None:
    encoder = FeatureEncoder(FeatureConfig(order_input=True), 1, horizon=10)
    encoder.history["order"] = 120
    with pytest.raises(ValueError, match="below 120"):
        encoder.encode(zeros(1, 52), zeros(1, encoder.size), None)


def zeros(rows: int, columns: int) -> NDArray[np.float32]:
    return np.zeros((rows, columns), np.float32)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((name, 1 << 13) for name in ("scanned", "exploited", "latest", "restored")),
        *(("last_kind", 6), ("last_kind", 40), ("last_slot", 13), ("scenario", 1)),
    ],
)
def test_a_damaged_history_is_refused(field: str, value: int) -> None:
    encoder = FeatureEncoder(FeatureConfig(), 2, horizon=HORIZON)
    observations = np.zeros((2, 52), np.float32)
    encoder.update(int64s([0, 1]), observations)
    features = np.zeros((2, encoder.size), np.float32)
    encoder.encode(observations, features, None)
    encoder.history[field][1] = value
    with pytest.raises(ValueError, match=r"^histories must be those of `update`"):
        encoder.encode(observations, features, None)
    with pytest.raises(ValueError, match=r"^histories must be those of `update`"):
        encoder.update(int64s([0, 1]), observations)


def test_unaligned_arrays_are_refused() -> None:
    encoder = FeatureEncoder(FeatureConfig(), 2, horizon=HORIZON)
    observations = np.zeros((2, 52), np.float32)
    actions = memoryview(bytearray(17))[1:].cast("q")
    with pytest.raises(TypeError, match=r"^actions must be an aligned array of type i8 and rank 1"):
        encoder.update(actions, observations)  # type: ignore[arg-type]
    size = dtypes.HISTORY.itemsize
    encoder.history = np.zeros(2 * size + 1, np.uint8)[1:].view(dtypes.HISTORY)
    with pytest.raises(TypeError, match=r"^histories must be an aligned array of type u1"):
        encoder.update(int64s([0, 0]), observations)
