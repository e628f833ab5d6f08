"""Harness: random sequences of calls, valid and invalid, on batches, environments and policies."""

import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.random import Generator

import cagepool
from cagepool import _core
from cagepool.sim import Batch, BatchConfig, dtypes
from cagepool.sim.encoder import FeatureConfig, FeatureEncoder
from cagepool.sim.masks import ACTION_SETS
from fuzz.games import random_actions, random_batch, random_red_actions, random_settings
from fuzz.outcomes import refusal_allowed
from fuzz.snapshots import forge_snapshot
from fuzz.values import chance, junk, maybe, pick

warnings.simplefilter("ignore")
SIZES = (0, 1, 2, 3, 17)


def run_case(rng: Generator) -> None:
    """Make calls on a few objects; each may be refused."""
    batches = [random_batch(rng) for _ in range(2)]
    envs = [_random_envs(rng) for _ in range(chance(rng, 0.5))]
    encoder = _random_encoder(rng)
    for _ in range(int(rng.integers(5, 40))):
        kind = rng.integers(10)
        with refusal_allowed():
            if kind < 4:
                pick(rng, BATCH_CALLS)(rng, pick(rng, batches))
            elif kind == 4:
                _copy_between(rng, *rng.permutation(np.array(batches, object)))
            elif kind == 5:
                _create(rng)
            elif kind == 6:
                _sample(rng)
            elif kind == 7:
                _loss_gradient(rng)
            elif kind == 8 or not envs:
                pick(rng, ENCODER_CALLS)(rng, encoder)
            else:
                pick(rng, ENV_CALLS)(rng, envs[0])


def _random_envs(rng: Generator) -> Any:
    settings = random_settings(rng)
    return cagepool.make_vec(int(rng.integers(1, 5)), render_mode="ansi", **settings)


def _random_encoder(rng: Generator) -> FeatureEncoder:
    flags: dict[str, Any] = {
        field.name: chance(rng, 0.7) for field in fields(FeatureConfig) if field.type is bool
    }
    config = FeatureConfig(actions=pick(rng, ACTION_SETS), **flags)
    return FeatureEncoder(config, int(rng.integers(1, 5)), horizon=int(rng.integers(1, 200)))


def _create(rng: Generator) -> None:
    """Create a batch or an environment with one setting that is wrong."""
    settings = random_settings(rng)
    settings[pick(rng, sorted(settings))] = junk(rng)
    games = junk(rng) if chance(rng, 0.1) else 2
    if isinstance(games, int | np.integer) and games > 1000:
        games = 2  # such a batch is allowed, and needs the memory
    if chance(rng, 0.5):
        Batch(games, BatchConfig(**settings))
    else:
        cagepool.make_vec(games, **settings).close()


def _ids(rng: Generator, games: int) -> Any:
    return maybe(rng, rng.permutation(games)[: rng.integers(games + 1)])


def _seeds(rng: Generator, count: int) -> Any:
    return maybe(rng, rng.integers(2**63, size=count, dtype=np.uint64))


def _step(rng: Generator, batch: Batch) -> None:
    red = random_red_actions(rng, batch)
    batch.step(
        maybe(rng, random_actions(rng, batch.games)),
        red if red is None else maybe(rng, red),
    )


def _step_some(rng: Generator, batch: Batch) -> None:
    ids = _ids(rng, batch.games)
    count = len(ids) if isinstance(ids, np.ndarray) and ids.ndim else batch.games
    batch.step(random_actions(rng, count), junk(rng) if chance(rng, 0.1) else None, ids)


def _reset(rng: Generator, batch: Batch) -> None:
    seeds = _seeds(rng, batch.games) if chance(rng, 0.7) else None
    batch.reset(seeds, _ids(rng, batch.games) if chance(rng, 0.3) else None)


def _restore(rng: Generator, batch: Batch) -> None:
    saved = batch.save(np.arange(batch.games))
    blobs = [forge_snapshot(rng, saved) if chance(rng, 0.3) else blob for blob in saved]
    batch.restore(maybe(rng, rng.permutation(batch.games)), blobs)


def _set_orders(rng: Generator, batch: Batch) -> None:
    if len(batch.orders):
        batch.orders[int(rng.integers(batch.games))] = int(pick(rng, (0, 5, 119, 119, 120, 255)))


def _read(rng: Generator, batch: Batch) -> None:
    game = junk(rng) if chance(rng, 0.3) else int(rng.integers(-1, batch.games + 1))
    pick(rng, (batch.core.steps, batch.core.session_log, batch.core.save, batch.stream_key))(game)


def _redirect(rng: Generator, batch: Batch) -> None:
    batch.core.redirect_observations(maybe(rng, np.zeros_like(batch.observations)))


def _write_rows(rng: Generator, batch: Batch) -> None:
    size = cagepool.sim.dtypes.TRACE_ROW.itemsize
    batch.core.write_trace_rows(maybe(rng, np.zeros((batch.games, size), np.uint8)))


def _copy_between(rng: Generator, source: Batch, target: Batch) -> None:
    """Copy games to another batch, which may have other settings."""
    count = min(source.games, target.games)
    target.restore(rng.permutation(target.games)[:count], source.save(np.arange(count)))


BATCH_CALLS: tuple[Callable[[Generator, Batch], None], ...] = (
    _step, _step, _step, _step_some, _reset, _restore, _set_orders, _read, _redirect, _write_rows,
    lambda rng, batch: batch.reseed(_ids(rng, batch.games), _seeds(rng, batch.games)),
    lambda rng, batch: batch.copy(_ids(rng, batch.games), _ids(rng, batch.games)),
)  # fmt: skip


def _floats(rng: Generator, *shape: int) -> Any:
    values = rng.normal(size=shape).astype(np.float32)
    if values.size and chance(rng, 0.1):
        special = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-40)
        values.flat[int(rng.integers(values.size))] = pick(rng, special)
    return maybe(rng, values, 0.05)


def _masks(rng: Generator, rows: int, choices: int) -> Any:
    if chance(rng, 0.3):
        return None
    return maybe(rng, (rng.random((rows, choices)) < 0.9).astype(np.uint8), 0.05)


def _sample(rng: Generator) -> None:
    rows, choices = pick(rng, SIZES), pick(rng, (*SIZES, 145))
    chosen = np.full(rows, -1)
    _core.sample_choices(
        _floats(rng, rows, choices),
        _masks(rng, rows, choices),
        maybe(rng, rng.random(rows, np.float32), 0.05),
        chosen,
        _floats(rng, rows),
    )
    assert np.all((chosen >= 0) & (chosen < choices)), (chosen, choices)


def _loss_gradient(rng: Generator) -> None:
    rows, choices, rollout = pick(rng, SIZES), pick(rng, (*SIZES, 145)), pick(rng, SIZES)
    _core.ppo_loss_gradient(
        logits=_floats(rng, rows, choices),
        values=_floats(rng, rows),
        rows=maybe(rng, rng.integers(max(rollout, 1), size=rows), 0.1),
        minibatch_size=int(pick(rng, (rows, rows + 1, 0))),
        masks=_masks(rng, rollout, choices),
        chosen=maybe(rng, rng.integers(max(choices, 1), size=rollout), 0.1),
        log_probabilities=_floats(rng, rollout),
        advantages=_floats(rng, rollout),
        old_values=_floats(rng, rollout),
        returns=_floats(rng, rollout),
        logits_gradient=_floats(rng, rows, choices),
        values_gradient=_floats(rng, rows),
        clip_range=float(rng.random()),
        clip_range_vf=float(pick(rng, (0, 0.2, -1, np.inf))),
        ent_coef=float(rng.random()),
    )


def _update(rng: Generator, encoder: FeatureEncoder) -> None:
    games = len(encoder.history)
    encoder.update(maybe(rng, random_actions(rng, games)), _floats(rng, games, 52))


def _encode(rng: Generator, encoder: FeatureEncoder) -> None:
    games = len(encoder.history)
    encoder.encode(
        _floats(rng, games, 52),
        maybe(rng, np.zeros((games, encoder.size), np.float32), 0.1),
        _masks(rng, games, encoder.n_choices),
    )


def _damage_history(rng: Generator, encoder: FeatureEncoder) -> None:
    if chance(rng, 0.7):
        encoder.reset()
    else:
        history = dtypes.as_bytes(encoder.history)
        history.flat[int(rng.integers(history.size))] = rng.integers(256)


ENCODER_CALLS: tuple[Callable[[Generator, FeatureEncoder], None], ...] = (
    _update, _update, _encode, _encode, _damage_history,
)  # fmt: skip


def _env_actions(rng: Generator, envs: Any) -> Any:
    actions = random_actions(rng, envs.num_envs)
    return actions.tolist() if chance(rng, 0.1) else maybe(rng, actions)


def _env_step(rng: Generator, envs: Any) -> None:
    red = rng.integers(_core.RED_ACTION_COUNT, size=envs.num_envs) if chance(rng, 0.3) else None
    envs.step(_env_actions(rng, envs), red)


def _env_reset(rng: Generator, envs: Any) -> None:
    seed = junk(rng) if chance(rng, 0.4) else int(rng.integers(2**31))
    mask = maybe(rng, rng.random(envs.num_envs) < 0.7)
    envs.reset(seed=seed, options={"reset_mask": mask} if chance(rng, 0.4) else None)


def _env_restore(rng: Generator, envs: Any) -> None:
    saved = envs.save(np.arange(envs.num_envs))
    envs.restore(_ids(rng, envs.num_envs), [forge_snapshot(rng, saved) for _ in saved])


ENV_CALLS: tuple[Callable[[Generator, Any], object], ...] = (
    _env_step, _env_step, _env_step, _env_reset, _env_restore,
    lambda rng, envs: envs.send(_env_actions(rng, envs), _ids(rng, envs.num_envs)),
    lambda rng, envs: envs.recv(junk(rng) if chance(rng, 0.2) else 1),
    lambda rng, envs: envs.copy(_ids(rng, envs.num_envs), _ids(rng, envs.num_envs)),
    lambda rng, envs: envs.reseed(_ids(rng, envs.num_envs), _seeds(rng, envs.num_envs)),
    lambda _, envs: envs.action_masks(),
    lambda _, envs: envs.render(),
    lambda rng, envs: envs.true_state_dict(int(rng.integers(-1, envs.num_envs + 1))),
)  # fmt: skip
