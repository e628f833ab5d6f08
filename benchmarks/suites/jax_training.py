"""PPO as one JAX program (examples/purejaxrl_ppo.py): several seeds vectorized against one."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.suites.subprocess_timer import SCRIPTS
from cagepool.bench.measure import Figures, Progress
from cagepool.bench.schema import Measurement, Repetitions

NAME = "examples/purejaxrl_ppo.py"
TIMEOUT_SECONDS = 300.0
ATTEMPTS = 2  # a process in which XLA hangs says nothing about the next one
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


@dataclass(frozen=True, kw_only=True)
class JaxTrainingConfig:
    """Settings of this bench."""

    repetitions: int = 3
    seeds: tuple[int, ...] = (1, 8)
    updates: int = 2
    n_envs: int = 256
    n_steps: int = 100

    def steps(self, seeds: int) -> int:
        """Environment steps of a training of all seeds."""
        return seeds * self.updates * self.n_envs * self.n_steps


def measure_jax_training(config: JaxTrainingConfig, progress: Progress) -> Figures:
    """Measure trainings in turns, each in a process of its own; on a CPU, CPU time on one thread.

    XLA's runtime on a CPU can hang when a program of this size is called again and again on
    several threads, so a process compiles the program and calls it once.
    """
    times: dict[int, list[float]] = {seeds: [] for seeds in config.seeds}
    total = config.repetitions * len(config.seeds)
    for repetition in range(config.repetitions):
        for number, seeds in enumerate(config.seeds, 1):
            times[seeds].append(_time_training(config, seeds))
            progress("training", repetition * len(config.seeds) + number, total)
    group = [
        Measurement.of(
            NAME,
            {"seeds": seeds, "n_envs": config.n_envs, "n_steps": config.n_steps},
            Repetitions(calls=1, steps_per_call=config.steps(seeds), seconds=seconds),
        )
        for seeds, seconds in times.items()
    ]
    return Figures(groups={"training": group}, ratios=seed_ratios(group))


def seed_ratios(group: Sequence[Measurement]) -> dict[str, float]:
    """Steps per second of all seeds together, divided by those of the first contender."""
    first, *others = group
    return {
        f"{other.settings['seeds']} seeds / {first.settings['seeds']}, steps of all seeds": round(
            other.steps_per_second / first.steps_per_second, 3
        )
        for other in others
    }


def _time_training(config: JaxTrainingConfig, seeds: int) -> float:
    """Seconds of a training, without the compilation.

    Raises:
        RuntimeError: the process has failed, or process after process has exceeded the limit.
    """
    sizes = [seeds, config.updates, config.n_envs, config.n_steps]
    command = [sys.executable, str(SCRIPTS / "time_jax_training.py"), *map(str, sizes)]
    for _ in range(ATTEMPTS):
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                env={**os.environ, "XLA_FLAGS": ONE_THREAD},
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            continue
        if done.returncode:
            raise RuntimeError(f"the training failed: {done.stderr.strip()[-500:]}")
        return float(done.stdout)
    raise RuntimeError(
        f"a training must end within {TIMEOUT_SECONDS:g} seconds, "
        f"got {ATTEMPTS} processes that did not"
    )
