"""Games in JAX equal those of the core, draw for draw."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cagepool.jax import Cage2, draws, rules
from cagepool.jax import scenario as sc
from cagepool.jax.bits import host_table
from tests.jax.lockstep import Lockstep

REDS = ("B_lineAgent", "RedMeanderAgent", "SleepAgent", "mix")
EDITIONS = ("2.1", "leaderboard")
SETTINGS = [
    *(
        Cage2(red=red, edition=edition, green=green)
        for red, edition, green in product(REDS, EDITIONS, (False, True))
    ),
    Cage2(red="given"),
    Cage2(red="given", edition="leaderboard", green=True),
    Cage2(red="mix", order="critical_first"),
    Cage2(red="mix", green=True, order="reverse", knowledge="observed"),
]


@pytest.mark.parametrize(
    "env",
    [
        Cage2(red="mix", edition="leaderboard", green=True, observation_dtype="uint8"),
        pytest.param(Cage2(red="given", green=True, order="reverse"), marks=pytest.mark.soak),
    ],
    ids=["scripted", "given"],
)
def test_every_field_equals_that_of_the_core(env: Cage2) -> None:
    assert Lockstep(env, games=32).play(100) == 3200


@pytest.mark.soak
@pytest.mark.parametrize("env", SETTINGS, ids=str)
def test_every_field_equals_that_of_the_core_in_long_play(env: Cage2) -> None:
    assert Lockstep(env, games=256, horizon=100, seed=2026).play(1000) == 256_000


MUTATIONS = {
    "red remembers no scan": (rules, "_scanned_ports", lambda _, game, *__: game.red_ports),
    "exploits of the highest weight are drawn more often": (
        *(draws, "_TOP_SHARE", np.uint32(4 << 29)),
    ),
    "User2 listens on SSH": (
        *(sc, "LISTENING"),
        host_table([1, 1, 31, 31, 1, 1, 1, 1, 129, 129, 7, 90, 121]),
    ),
    "a failed exploit is followed by a scan": (
        *(rules, "_FAILURE_TABLES", (np.uint32(0x55222110), np.uint32(0xDC99955))),
    ),
}


@pytest.mark.soak
@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_changed_rule_is_noticed(mutation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jax.clear_caches()  # programs with the real rule
    module, name, value = MUTATIONS[mutation]
    assert hasattr(module, name)
    monkeypatch.setattr(module, name, value)

    with pytest.raises(AssertionError, match="not equal"):
        Lockstep(Cage2(red="B_lineAgent"), games=32).play(100)

    jax.clear_caches()


def test_rewards_are_rounded_correctly() -> None:
    penalties = np.arange(3000, dtype=np.uint32)

    rewards = jax.jit(rules.reward)(jnp.asarray(penalties))

    np.testing.assert_array_equal(rewards, (penalties / -10.0 + 0.0).astype(np.float32))
