"""RLlib's PPO on native pools compared with one process per game."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ray

from cagepool.bench.measure import Contender, Figures, Pace, Progress, measure_groups, time_calls
from cagepool.bench.schema import Groups, rates
from cagepool.bench.system_load import memory_bytes, process_tree
from cagepool.envs.single import ENVIRONMENT_ID
from cagepool.integrations.rllib import ppo_config, suppress_warnings
from cagepool.train.torch_learner import use_threads

RED = "B_lineAgent"
POOLS = "native pools"
PROCESSES = "one process per game"


@dataclass(frozen=True, kw_only=True)
class RllibConfig:
    """Settings of this bench."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=7, seconds=3.0))
    games: int = 100
    steps: int = 100
    """Steps per game between two updates."""
    runners: tuple[int, ...] = (0, 2, 20)
    """Numbers of env runners that share the games; 0: the learner plays them."""
    process_runners: int = 2
    """Env runners of the variant with one process per game."""


def measure_rllib(config: RllibConfig, progress: Progress) -> Figures:
    """Measure rollouts alone, then whole updates; all algorithms exist all the time."""
    use_threads(1)  # threads that spin while they wait would disturb the env runners
    with _local_ray(sum(config.runners) + config.process_runners + 1), ExitStack() as stack:
        progress("starting env runners", 0, 1)
        algorithms = {}
        for name, settings in _variants(config):
            algorithms[name] = settings.build_algo()
            stack.callback(algorithms[name].stop)
        contenders = [
            (
                "collection",
                _contenders(config, {n: partial(_collect, a) for n, a in algorithms.items()}),
            ),
            ("training", _contenders(config, {n: a.train for n, a in algorithms.items()})),
        ]
        groups = measure_groups(contenders, config.pace, progress)
        memory = {name: _memory(algorithm) for name, algorithm in algorithms.items()}
    ratios = rllib_ratios(groups)
    return Figures(groups=groups, ratios=ratios, facts={"memory_of_env_runners": memory})


def rllib_ratios(groups: Groups) -> dict[str, float]:
    """Throughput with pools, divided by that with one process per game."""
    ratios = {}
    for group, measurements in groups.items():
        rate = rates(measurements)
        (processes,) = (value for name, value in rate.items() if name.endswith(PROCESSES))
        for name, value in rate.items():
            if not name.endswith(PROCESSES):
                ratios[f"{group}: {name} / {PROCESSES}"] = round(value / processes, 3)
    return ratios


@contextmanager
def _local_ray(cpus: int) -> Iterator[None]:
    """Start Ray on this machine, without usage statistics.

    `cpus` exceeds the number of cores: all env runners exist, but only one variant runs at a time.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with suppress_warnings():
        ray.init(
            address="local",
            num_cpus=cpus,
            include_dashboard=False,
            object_store_memory=200 * 2**20,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        try:
            yield
        finally:
            ray.shutdown()


def _variants(config: RllibConfig) -> Iterator[tuple[str, Any]]:
    for runners in config.runners:
        yield f"{runners or 'no'} env runners, {POOLS}", _settings(config, runners)
    settings = _settings(config, config.process_runners)
    settings.environment(f"cagepool:{ENVIRONMENT_ID}", env_config={"red": RED})
    settings.env_runners(gym_env_vectorize_mode="async")
    yield f"{config.process_runners or 'no'} env runners, {PROCESSES}", settings


def _settings(config: RllibConfig, runners: int) -> Any:
    games = config.games // max(1, runners)
    return ppo_config(runners, games, fragment=config.steps, seed=0, red=RED)


def _contenders(config: RllibConfig, calls: dict[str, Callable[[], object]]) -> list[Any]:
    def make(name: str, call: Callable[[], object], _: ExitStack) -> Contender:
        return Contender(
            name=name,
            settings={"games": config.games, "steps": config.steps, "red": RED},
            steps_per_call=config.games * config.steps,
            timer=time_calls(call),
        )

    return [partial(make, name, call) for name, call in calls.items()]


def _collect(algorithm: Any) -> None:
    """Let all env runners play one fragment in parallel; the samples stay there."""
    _foreach_runner(algorithm, _sample)


def _sample(runner: Any) -> None:
    runner.sample()


def _foreach_runner(algorithm: Any, call: Callable[[Any], Any]) -> list[Any]:
    """Call a function on each env runner that has games."""
    is_local = algorithm.config.num_env_runners == 0
    results: list[Any] = algorithm.env_runner_group.foreach_env_runner(
        call, local_env_runner=is_local
    )
    return results


def _memory(algorithm: Any) -> dict[str, float]:
    if not algorithm.config.num_env_runners:
        return {}
    usage = _foreach_runner(algorithm, _runner_memory)
    return {
        "env_runners": len(usage),
        "processes": sum(processes for processes, _ in usage),
        "megabytes": round(sum(megabytes for _, megabytes in usage)),
    }


def _runner_memory(_runner: Any) -> tuple[int, float]:
    """Number of processes of an env runner, and their memory in megabytes."""
    processes = process_tree()
    return len(processes), memory_bytes(processes) / 2**20
