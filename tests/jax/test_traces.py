"""Recorded games of CybORG, replayed in JAX with the recorded draws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from cagepool.jax import Cage2, rules
from cagepool.jax import scenario as sc
from cagepool.jax.draws import NO_HOST
from cagepool.jax.game import pack, unpack
from tests.sim.games import GOLDEN

DRAWS = ("green_host", "red_target", "exploit", "detected", "esc_pick")
RANK_OF_EXPLOIT = np.argsort(sc.EXPLOIT_OF_RANK)
HOSTS = np.arange(13, dtype=np.uint32)


class FedDraws:
    """Draws of one recorded step."""

    def __init__(self, row: dict[str, Array]) -> None:
        self.row = {name: values.astype(jnp.uint32) for name, values in row.items()}

    def green_host(self) -> Array:
        return self.row["green_host"] & NO_HOST  # -1: none

    def red_target(self, candidates: Array) -> Array:
        del candidates
        return self.row["red_target"] & NO_HOST

    def exploit_rank(self, options: Array) -> Array:
        del options
        ranks = [jnp.where(self.row["exploit"] == i, r, 0) for i, r in enumerate(RANK_OF_EXPLOIT)]
        return sum(ranks[1:], ranks[0]).astype(jnp.uint32)

    def is_detected(self) -> Array:
        return self.row["detected"] == 1

    def escalated_session(self, count: Array) -> Array:
        del count
        return self.row["esc_pick"]


def replay(env: Cage2, red: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Fields of the trace as JAX plays them, (episodes, steps, ...)."""

    def play_step(game: Any, row: dict[str, Array]) -> tuple[Any, Any]:
        action = row["blue_action"].astype(jnp.uint32)
        game, result = rules.play_step(env.rules, game, action, FedDraws(row))
        return game, fields(env, action, game, result)

    def play_episode(red: Array, rows: dict[str, Array]) -> Any:
        _, state = env.reset(jax.random.PRNGKey(0))
        game = unpack(state)._replace(red=red.astype(jnp.uint32))
        return jax.lax.scan(play_step, game, rows)[1]

    played = jax.jit(jax.vmap(play_episode))(jnp.asarray(red), inputs)
    return {name: np.asarray(values) for name, values in played.items()}


def fields(env: Cage2, action: Array, game: Any, result: Any) -> dict[str, Array]:
    state = pack(game)
    truth = env.true_state(state)
    moves = rules.moves(action, result)
    ports = jnp.stack([(w >> s) & 255 for w in game.red_ports for s in (0, 8, 16, 24)])[:13]
    by_exploit = sum(((ports >> rank) & 1) << i for i, rank in enumerate(RANK_OF_EXPLOIT))
    lists = (game.scanned, game.exploited, game.escalated, game.mapped)
    return {
        **{name: moves[name] for name in moves if name not in ("blue_action", "decoy_pick")},
        "obs": env.get_obs(state),
        "reward_tenths": -result.penalty.astype(jnp.int32),
        "s_priv": truth["privileged"],
        "s_user_seen": truth["user_seen"],
        "s_user_unseen": truth["user_unseen"],
        "s_decoys": truth["decoys"],
        "s_malware": truth["malware"],
        "s_red_ports": jnp.where(ports != 0, by_exploit + 256, 0),
        "s_known_ip": (game.known_ip >> HOSTS) & 1,
        "s_known_host": (game.known_host >> HOSTS) & 1,
        "s_known_net": (game.known_nets >> np.arange(3, dtype=np.uint32)) & 1,
        "s_ot": jnp.stack(
            [
                truth["ot_running"][sc.OP_SERVER0],
                truth["ot_pid_known"][sc.OP_SERVER0],
                truth["ot_service_known"],
            ]
        ),
        "s_bline_pos": jnp.where(game.red == 0, game.position.astype(jnp.int32), -1),
        "s_meander": jnp.stack(lists),
    }


@pytest.mark.parametrize(
    ("file", "edition", "green"),
    [
        ("traces_dev", "2.1", 1),
        pytest.param("traces_dev", "2.1", 0, marks=pytest.mark.soak),
        pytest.param("traces_dev_leaderboard", "leaderboard", 0, marks=pytest.mark.soak),
        pytest.param("traces_dev_leaderboard", "leaderboard", 1, marks=pytest.mark.soak),
    ],
)
def test_recorded_games_are_reproduced_in_every_field(file: str, edition: str, green: int) -> None:
    with np.load(GOLDEN / f"{file}.npz") as recording:
        chosen = recording["ep_green"] == green
        trace = {
            name: recording[name][chosen]
            for name in recording.files
            if recording[name].ndim and not name.startswith("ep_")
        }
        red = recording["ep_red"][chosen]
    env = Cage2(red="mix", edition=edition, green=bool(green))

    played = replay(env, red, {name: trace[name] for name in ("blue_action", *DRAWS)})

    assert len(red) > 10
    for name, values in trace.items():
        if name not in ("blue_action", "esc_pick"):  # an input, and one that has no effect here
            np.testing.assert_array_equal(played[name], values, name)
