"""Print the seconds of one training in JAX: time_jax_training.py SEEDS UPDATES N_ENVS N_STEPS.

On a CPU these are seconds of CPU time, which other processes disturb less.
"""

import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
from purejaxrl_ppo import Ppo, Settings

seeds, updates, n_envs, n_steps = map(int, sys.argv[1:])
ppo = Ppo(Settings(updates=updates, n_envs=n_envs, n_steps=n_steps))
keys = jax.vmap(jax.random.PRNGKey)(jnp.arange(seeds))
train = jax.jit(jax.vmap(ppo.train)).lower(keys).compile()
is_cpu = jax.devices()[0].platform == "cpu"
clock = time.process_time if is_cpu else time.perf_counter
start = clock()
jax.block_until_ready(train(keys))
print(clock() - start)
