"""Throughput of the games in JAX, in turns with the core: one program plays whole episodes."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np

from cagepool.bench.engine import ATTACKERS, FEW, MANY, batch_contender, cost
from cagepool.bench.measure import (
    Contender,
    Figures,
    MakeContender,
    Pace,
    Progress,
    Timer,
    measure_groups,
)
from cagepool.bench.schema import Groups, Measurement
from cagepool.jax import Cage2

EPISODE_STEPS = 100
Dtype: TypeAlias = Literal["float32", "uint8"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
NAME = "jax"
CPU_TIME, WALL_TIME = "CPU time of the process", "wall time"


@dataclass(frozen=True, kw_only=True)
class JaxConfig:
    """Settings of this bench."""

    pace: Pace = field(default_factory=Pace)
    sizes: tuple[int, ...] = (FEW, MANY)
    """Numbers of games."""


def measure_jax(config: JaxConfig, progress: Progress) -> Figures:
    """Measure the core on one core and JAX on its default device.

    If that device is a CPU, JAX gets the same core, and the CPU time of this process is measured,
    which other processes on that core disturb less than wall time.
    """
    with _one_core():  # before JAX is used: it starts a thread per core, and splits programs so
        device = jax.devices()[0]
        clock = CPU_TIME if device.platform == "cpu" else WALL_TIME
        groups = [(f"{games} games", list(_makers(games, clock))) for games in config.sizes]
        measured = measure_groups(groups, config.pace, progress)
    facts = {
        "device": f"{device.platform}: {device.device_kind}",
        "jax": jax.__version__,
        "clock": clock,
    }
    return Figures(groups=measured, ratios=jax_ratios(measured), facts=facts)


def jax_ratios(groups: Groups) -> dict[str, float]:
    """Rate of JAX as a share of the core's."""
    return {
        f"jax / core, {name}, {red}, {dtype}": round(_share(group, red, dtype), 3)
        for name, group in groups.items()
        for red, dtype in product(ATTACKERS, DTYPES)
    }


def _share(group: Sequence[Measurement], red: str, dtype: str) -> float:
    settings = {"red": red, "observation_dtype": dtype}
    return cost(group, **settings) / cost(group, NAME, **settings)


def _makers(games: int, clock: str) -> Iterator[MakeContender]:
    for red, dtype in product(ATTACKERS, DTYPES):
        for make in (_core_contender, _jax_contender):
            yield partial(_make_timed, partial(make, games, red, dtype), clock)


def _make_timed(make: Callable[[], Contender], clock: str, _: ExitStack) -> Contender:
    contender = make()
    return replace(contender, timer=_cpu_timer(contender.timer)) if clock == CPU_TIME else contender


def _cpu_timer(timer: Timer) -> Timer:
    """Return a timer of the CPU time of this process for the same calls."""

    def time_cpu(calls: int, /) -> float:
        start = time.process_time()
        timer(calls)
        return time.process_time() - start

    return time_cpu


def _core_contender(games: int, red: str, dtype: Dtype) -> Contender:
    return batch_contender(games, red=red, observation_dtype=dtype)


def _jax_contender(games: int, red: str, dtype: Dtype) -> Contender:
    return Contender(
        name=NAME,
        settings={"games": games, "red": red, "observation_dtype": dtype},
        steps_per_call=games * EPISODE_STEPS,
        timer=_episode_timer(Cage2(red=red, observation_dtype=dtype), games),
    )


def _episode_timer(env: Cage2, games: int) -> Timer:
    """Return a timer of a program that plays an episode of every game."""
    keys = jax.vmap(jax.random.PRNGKey)(jnp.arange(games))
    observations, states = jax.jit(jax.vmap(env.reset))(keys)
    rng = np.random.default_rng(0)
    actions = jnp.asarray(rng.integers(0, env.num_actions, (EPISODE_STEPS, games)), jnp.int32)
    step_all = jax.vmap(env.step, in_axes=(None, 0, 0))

    def step(carry: Any, row: Any) -> tuple[Any, None]:
        _, states, total = carry
        observations, states, rewards, *_ = step_all(keys[0], states, row)
        return (observations, states, total + rewards), None

    program = jax.jit(lambda carry: jax.lax.scan(step, carry, actions)[0], donate_argnums=0)
    carry = jax.block_until_ready(program((observations, states, jnp.zeros(games))))

    def timer(calls: int, /) -> float:
        nonlocal carry
        start = time.perf_counter()
        for _ in range(calls):
            carry = program(carry)
        jax.block_until_ready(carry)
        return time.perf_counter() - start

    return timer


@contextmanager
def _one_core() -> Iterator[None]:
    """Keep all threads of this process on one core."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    _set_cores({min(cores)})
    try:
        yield
    finally:
        _set_cores(cores)


def _set_cores(cores: set[int]) -> None:
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)
