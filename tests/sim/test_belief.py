"""Laws of the exact belief; that it is exact is in test_belief_enumeration.py."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cagepool import _core
from cagepool.policy.load import load_run as load
from cagepool.sim import BELIEF_FEATURES, BeliefConfig, BeliefFilter
from cagepool.sim.names import OFFICIAL_REDS, action_index
from cagepool.types import Arrays, Int64s
from tests.sim.games import ACTION_LISTS, SEEDS, int64s, start_batch

ROUNDING = 1e-9  # of sums of doubles
CONFIGS = st.builds(
    BeliefConfig,
    edition=st.sampled_from(["2.1", "leaderboard"]),
    green=st.booleans(),
    capacity=st.sampled_from([3, 64]),
)
Chooser = Callable[[NDArray[Any]], Int64s]


def random_blue(games: int, *, busy: float) -> Chooser:
    """Blue that plays any action with this probability, and else sleeps."""
    rng = np.random.default_rng(3)

    def choose(_: NDArray[Any]) -> Int64s:
        actions = rng.integers(0, _core.ACTION_COUNT, games)
        return np.where(rng.random(games) < busy, actions, 0)

    return choose


def scripted_blue(games: int) -> Chooser:
    """Blue that restores a host of the last exploit that it saw, or else removes or analyses."""
    rng = np.random.default_rng(4)

    def choose(observations: NDArray[Any]) -> Int64s:
        exploited = observations.reshape(games, -1, 4)[:, :, 1] != 0
        hosts = np.where(exploited.any(1), exploited.argmax(1), rng.integers(1, 13, games))
        verbs = np.array([action_index(f"{v} Defender") for v in ("Restore", "Remove", "Analyse")])
        return verbs[rng.integers(0, 3, games)] + hosts

    return choose


def trained_blue(games: int, name: str) -> Chooser:
    trained = load(f"zoo:{name}")
    trained.begin(games)
    rng = np.random.default_rng(5)
    return lambda observations: trained.act(observations, greedy=False, rng=rng)


def belief_of(game: list[int], seed: int, config: BeliefConfig, **more: Any) -> BeliefFilter:
    """The belief after some actions in a game of any official red."""
    belief = BeliefFilter(1, config)
    batch = start_batch(
        1, seed, red="mix", edition=config.edition, green=config.green, max_steps=99, **more
    )
    for action in game:
        batch.step(int64s([action]))
        belief.update(int64s([action]), batch.observations)
    return belief


def is_refused(belief: BeliefFilter, arrays: Arrays) -> bool:
    """Whether arrays are refused as a saved belief, by one of two sentences."""
    try:
        belief.restore(arrays)
    except ValueError as error:
        return str(error).startswith(("a saved belief must", "a snapshot must hold"))
    return False


def same_arrays(first: Arrays, second: Arrays) -> bool:
    return first.keys() == second.keys() and all(
        np.array_equal(first[name], second[name]) for name in first
    )


@pytest.mark.parametrize("green", [False, True], ids=["green off", "green on"])
@pytest.mark.parametrize("edition", ["2.1", "leaderboard"])
@pytest.mark.parametrize("blue", ["random", "quiet", "scripted", "trained"])
def test_the_truth_never_has_probability_zero(edition: str, green: bool, blue: str) -> None:
    games = 125
    choose = {
        "random": lambda: random_blue(games, busy=1.0),
        "quiet": lambda: random_blue(games, busy=0.2),
        "scripted": lambda: scripted_blue(games),
        "trained": lambda: trained_blue(games, f"best-{edition}"),
    }[blue]()
    batch = start_batch(games, 100, red="mix", edition=edition, green=green, max_steps=50)
    belief = BeliefFilter(games, BeliefConfig(edition=edition, green=green, capacity=1000))
    ids = np.arange(games)
    for _ in range(49):
        actions = choose(batch.observations)
        batch.step(actions)
        belief.update(actions, batch.observations)
        assert (belief.probability_of(ids, batch.save(ids)) > 0).all()
    assert belief.totals.dropped == 0


@given(seed=SEEDS, game=ACTION_LISTS, config=CONFIGS)
@example(seed=39916799, game=[0] * 5, config=BeliefConfig(green=True, capacity=3))
def test_probabilities_sum_to_one(seed: int, game: list[int], config: BeliefConfig) -> None:
    belief = belief_of(game, seed, config)
    said = belief.probabilities[0]
    _, weights = belief.hypotheses(0)
    # Where hypotheses were dropped for want of room, none may be left that fits.
    assert belief.fits[0] or belief.totals.dropped
    total = float(belief.fits[0])
    assert weights.sum() == pytest.approx(total, abs=ROUNDING)
    assert said["reds"].sum() == pytest.approx(total, abs=ROUNDING)
    assert said["next_kind"].sum() == pytest.approx(total, abs=ROUNDING)
    assert said["b_line_position"].sum() == pytest.approx(said["reds"][0], abs=ROUNDING)
    assert said["b_line_user"].sum() == pytest.approx(said["reds"][0], abs=ROUNDING)
    assert (said["privileged"] + said["user_seen"] <= 1 + ROUNDING).all()
    assert len(weights) == belief.counts[0] <= config.capacity


@given(seed=SEEDS, game=ACTION_LISTS, config=CONFIGS)
def test_the_features_are_the_probabilities(
    seed: int, game: list[int], config: BeliefConfig
) -> None:
    belief = belief_of(game, seed, config)
    features = np.full((1, BELIEF_FEATURES + 7), 9, np.float32)
    belief.write_features(features, column=4)
    said = np.concatenate([np.ravel(value) for value in belief.probabilities[0]])
    np.testing.assert_allclose(features[0, 4:-3], said, atol=1e-5)  # sums of floats
    assert (features[0, :4] == 9).all()
    assert (features[0, -3:] == 9).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_belief_depends_on_its_own_game_only(threads: int) -> None:
    games = 50
    batch = start_batch(games, 8, red="mix", green=True, max_steps=40)
    together = BeliefFilter(games, BeliefConfig(green=True, capacity=8, threads=threads))
    alone = [BeliefFilter(1, BeliefConfig(green=True, capacity=8)) for _ in range(games)]
    choose = random_blue(games, busy=0.5)
    for _ in range(39):
        actions = choose(batch.observations)
        batch.step(actions)
        together.update(actions, batch.observations)
        for game, belief in enumerate(alone):
            belief.update(actions[game : game + 1], batch.observations[game : game + 1])
    saved = [belief.state() for belief in alone]
    for name, whole in together.state().items():
        assert np.array_equal(whole, np.concatenate([arrays[name] for arrays in saved]))
    assert together.totals.dropped > 0  # the order of equal weights mattered


def test_a_restored_belief_goes_on_as_the_saved_one() -> None:
    games = 20
    batch = start_batch(games, 3, red="mix", max_steps=60)
    first, second = BeliefFilter(games), BeliefFilter(games)
    choose = random_blue(games, busy=0.5)
    for step in range(40):
        if step == 20:
            second.restore(first.state())
        actions = choose(batch.observations)
        batch.step(actions)
        first.update(actions, batch.observations)
        if step >= 20:
            second.update(actions, batch.observations)
    assert same_arrays(first.state(), second.state())


def test_some_games_can_be_updated_and_reset_alone() -> None:
    batch = start_batch(3, red="b_line")
    belief = BeliefFilter(3)
    actions = int64s([0, 0, 0])
    for _ in range(6):
        batch.step(actions)
        belief.update(actions[:2], batch.observations[[2, 0]], ids=int64s([2, 0]))
    assert belief.posterior[1] == pytest.approx([1 / 3] * 3)
    assert belief.posterior[2] == pytest.approx([1, 0, 0])
    belief.reset(int64s([2]))
    assert belief.posterior[2] == pytest.approx([1 / 3] * 3)
    assert belief.posterior[0] == pytest.approx([1, 0, 0])


@pytest.mark.parametrize("form", ["float32", "uint8", "words"])
def test_observations_may_be_values_or_words(form: str) -> None:
    batch = start_batch(5, 1, red="meander", max_steps=30)
    plain, other = BeliefFilter(5), BeliefFilter(5)
    for _ in range(20):
        batch.step(int64s([0] * 5))
        plain.update(int64s([0] * 5), batch.observations)
        words = (batch.observations.astype(np.uint64) << np.arange(52, dtype=np.uint64)).sum(1)
        observations = words if form == "words" else batch.observations.astype(form)
        other.update(int64s([0] * 5), observations.astype(np.uint64 if form == "words" else form))
    assert same_arrays(plain.state(), other.state())


def test_the_likelihood_tells_which_attacker_it_is() -> None:
    batch = start_batch(3, 0, red=list(OFFICIAL_REDS))
    belief = BeliefFilter(3, BeliefConfig(weights=(8, 1, 1)))
    for _ in range(5):
        batch.step(int64s([0] * 3))
        belief.update(int64s([0] * 3), batch.observations)
    assert belief.posterior.round(6).tolist() == np.eye(3).tolist()
    assert belief.log_likelihood[2, 2] == 0  # nothing is random
    assert np.isneginf(belief.log_likelihood[~np.eye(3, dtype=bool)]).all()


def test_a_prior_shifts_the_posterior_and_not_the_likelihood() -> None:
    def after_one_scan(weights: tuple[float, float]) -> BeliefFilter:
        batch = start_batch(1, 0, red="b_line")
        belief = BeliefFilter(1, BeliefConfig(reds=["b_line", "meander"], weights=weights))
        for _ in range(2):
            batch.step(int64s([0]))
            belief.update(int64s([0]), batch.observations)
        return belief

    even, uneven = after_one_scan((1, 1)), after_one_scan((9, 1))
    assert np.exp(even.log_likelihood[0]) == pytest.approx([1 / 4, 1 / 5])  # User1-4, User0-4
    assert uneven.log_likelihood[0] == pytest.approx(even.log_likelihood[0])
    assert uneven.posterior[0] == pytest.approx(np.array([9 / 4, 1 / 5]) / (9 / 4 + 1 / 5))


def test_a_game_that_no_red_explains_says_so_until_its_reset() -> None:
    belief = BeliefFilter(2)
    impossible = np.zeros((2, 52), np.uint8)
    impossible[0, :2] = 1  # an exploit of Defender in the first step
    belief.update(int64s([0, 0]), impossible)
    belief.update(int64s([0, 0]), np.zeros((2, 52), np.uint8))
    assert belief.fits.tolist() == [False, True]
    said = belief.probabilities[0]
    assert said["no_red_fits"] == 1
    assert said["reds"].sum() == said["privileged"].sum() == 0
    assert np.isneginf(belief.log_likelihood[0]).all()
    with pytest.raises(ValueError, match="game 0 has no hypothesis to sample: no red fits"):
        belief.sample(int64s([0]), seed=0)
    saved = belief.state()
    belief.reset(int64s([0]))
    assert belief.fits.all()
    belief.restore(saved)
    assert belief.fits.tolist() == [False, True]


def test_what_is_dropped_is_counted() -> None:
    batch = start_batch(30, 0, red="meander", green=True, max_steps=60)
    full = BeliefFilter(30, BeliefConfig(green=True, capacity=2000))
    small = BeliefFilter(30, BeliefConfig(green=True, capacity=4))
    for _ in range(40):
        batch.step(int64s([0] * 30))
        full.update(int64s([0] * 30), batch.observations)
        small.update(int64s([0] * 30), batch.observations)
    assert full.totals.dropped == 0 == full.totals.dropped_mass
    assert small.counts.max() <= 4 < full.counts.max()
    dropped = small.dropped
    assert (dropped["mass"] > 0).tolist() == (dropped["number"] > 0).tolist()
    assert small.totals.dropped == dropped["number"].sum() > 0
    assert small.totals.dropped_mass == pytest.approx(dropped["mass"].sum())
    assert small.totals.updates == 30 * 40
    small.reset()
    assert small.dropped["number"].sum() == 0
    assert small.totals.dropped == dropped["number"].sum()


def test_samples_are_games_of_the_belief_with_its_frequencies() -> None:
    batch = start_batch(1, 12, red="b_line", max_steps=80)
    belief = BeliefFilter(1)
    actions = ["Sleep"] * 2 + ["DecoyTomcat Enterprise0", "DecoyFemitter Enterprise1"]
    for name in actions + ["Sleep"] * 6:
        batch.step(int64s([action_index(name)]))
        belief.update(int64s([action_index(name)]), batch.observations)
    count = 2000
    ids = np.zeros(count, np.int64)
    samples = belief.sample(ids, seed=5, max_steps=80)
    assert samples == belief.sample(ids, seed=5, max_steps=80)
    assert (belief.probability_of(ids, samples) > 0).all()
    games = start_batch(count, max_steps=80)
    games.restore(np.arange(count), samples)
    assert (games.observations == batch.observations).all()
    said = belief.probabilities[0]["privileged"]
    error = 4 * np.sqrt(said * (1 - said) / count) + 1e-12  # four standard errors
    assert (abs((games.true_state["privileged"] > 0).mean(0) - said) <= error).all()
    for _ in range(70):  # they can be played to their end
        games.step(np.zeros(count, np.int64))
    assert games.truncations.all()
    assert len(np.unique(games.episode_returns)) > 1


def test_a_damaged_state_is_refused_and_changes_nothing() -> None:
    belief = belief_of([0] * 12, 1, BeliefConfig(reds=["meander"]))
    good = belief.state()
    rng = np.random.default_rng(0)
    for name in good:
        for _ in range(200):
            bad = {key: array.copy() for key, array in good.items()}
            row = rng.integers(len(bad[name]))
            bad[name][row, rng.integers(bad[name].shape[1])] ^= np.uint8(1 << rng.integers(8))
            if is_refused(belief, bad):
                assert same_arrays(belief.state(), good)
            else:  # a changed time or evidence that another game could have
                belief.update(int64s([0]), np.zeros((1, 52), np.uint8))
                belief.restore(good)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda _: {}, "a saved belief must have belief_states, got"),
        (lambda a: a | {"belief_states": a["belief_states"][:0]}, "must have 1 games, got 0"),
        (
            lambda a: a | {"belief_hypotheses": a["belief_hypotheses"][:0]},
            "must have at most `capacity` hypotheses per game, and all of them",
        ),
        (
            lambda a: a | {"belief_hypotheses": np.repeat(a["belief_hypotheses"], 2, 0)},
            "must have no more hypotheses than its games count",
        ),
    ],
    ids=["empty", "no games", "no hypotheses", "too many"],
)
def test_a_state_of_another_shape_is_refused(
    change: Callable[[Arrays], Arrays], sentence: str
) -> None:
    belief = belief_of([0] * 3, 1, BeliefConfig())
    with pytest.raises(ValueError, match=sentence):
        belief.restore(change(belief.state()))


def test_a_state_of_other_settings_is_refused() -> None:
    saved = belief_of([0], 1, BeliefConfig()).state()  # any red is still possible
    for config in (BeliefConfig(edition="leaderboard"), BeliefConfig(reds=["meander"])):
        with pytest.raises(ValueError, match="a saved belief must be undamaged"):
            BeliefFilter(1, config).restore(saved)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: BeliefConfig(reds=[]), ValueError, "reds must be different red agents"),
        (lambda: BeliefConfig(reds=["given"]), ValueError, "reds must be among B_lineAgent"),
        (lambda: BeliefConfig(reds=["b_line"] * 2), ValueError, "reds must be different"),
        (lambda: BeliefConfig(weights=[1]), ValueError, "one value per red agent, got 1 for 3"),
        (lambda: BeliefConfig(weights=[1, 0, 1]), ValueError, "weights must be positive numbers"),
        (lambda: BeliefFilter(0), ValueError, "must have at least 1 game, got 0"),
        (lambda: BeliefFilter(1, BeliefConfig(capacity=2)), ValueError, "capacity must be at"),
        (lambda: BeliefFilter(1, BeliefConfig(edition="3")), ValueError, "edition must be one"),
        (lambda: BeliefFilter(2).reset(int64s([2])), IndexError, "index must be below 2, got 2"),
        (
            lambda: BeliefFilter(1).update(int64s([145]), np.zeros((1, 52), np.uint8)),
            IndexError,
            "the action of game 0 must be below 145, got 145",
        ),
        (
            lambda: BeliefFilter(2).update(
                int64s([0, 0]), np.zeros((2, 52), np.uint8), int64s([1, 1])
            ),
            ValueError,
            "each game may be named once, got 1 twice",
        ),
        (
            lambda: BeliefFilter(2).update(int64s([0, 0]), np.zeros((1, 52), np.uint8)),
            ValueError,
            "one action and one observation per game, got 2 and 1 for 2 games",
        ),
        (
            lambda: BeliefFilter(1).update(int64s([0]), np.zeros((1, 51), np.float32)),
            ValueError,
            "observations must have 52 columns, got 51",
        ),
        (
            lambda: BeliefFilter(1).write_features(np.zeros((1, 9), np.float32)),
            ValueError,
            "features must have 180 columns from column 0 on, got 9 in all",
        ),
        (
            lambda: BeliefFilter(1).sample(int64s([0]), 0, max_steps=0),
            ValueError,
            "max_steps must be from 1 to 65535, got 0",
        ),
        (
            lambda: BeliefFilter(1).probability_of(int64s([0]), [b"no game"]),
            ValueError,
            "a snapshot must be whole",
        ),
    ],
)
def test_a_wrong_call_gets_one_sentence(
    call: Callable[[], object], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        call()
