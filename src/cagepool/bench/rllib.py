"""How fast RLlib's PPO is on native pools, beside the same with one process a game."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ray

from cagepool.bench import machine
from cagepool.bench.measure import Contender, Measurement, Pace, Settings, compare, timed
from cagepool.bench.processes import family, memory_bytes
from cagepool.bench.result import Result
from cagepool.envs.registration import ENVIRONMENT_ID
from cagepool.integrations.rllib import ppo_config
from cagepool.integrations.rllib.config import suppress_warnings
from cagepool.train.learner import use_threads

RED = "B_lineAgent"
POOLS = "a pool each"
PROCESSES = "a process a game"


@dataclass(frozen=True, kw_only=True)
class RllibConfig:
    """What to measure."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=7, seconds=3.0))
    games: int = 100
    steps: int = 100
    """Steps played in each game between two updates."""
    runners: tuple[int, ...] = (0, 2, 20)
    """Numbers of env runners among which the games are dealt out; 0: the learner plays."""
    process_runners: int = 2
    """Env runners of those games that have a process each."""


@dataclass(frozen=True, kw_only=True)
class RllibResult(Result):
    """Collection and whole training, by pools and by processes."""

    memory: dict[str, dict[str, float]]
    """Of the env runners of each contender, with the processes that they have started."""

    @property
    def ratios(self) -> dict[str, float]:
        """The figures that claims are made of, each from one group."""
        ratios = {}
        for group, members in self.groups.items():
            rates = {one.name: one.steps_per_second for one in members}
            (slow,) = (rate for name, rate in rates.items() if name.endswith(PROCESSES))
            for name, rate in rates.items():
                if not name.endswith(PROCESSES):
                    ratios[f"{group}: {name} / {PROCESSES}"] = round(rate / slow, 3)
        return ratios

    def facts(self) -> dict[str, object]:
        """What else belongs into the JSON."""
        return {"memory_of_env_runners": self.memory}


def measure_rllib(config: RllibConfig, progress: Callable[[str, int, int], object]) -> RllibResult:
    """Measure collection alone, then whole training, with all algorithms alive all the time.

    `progress` is told the group under way, the turns done in it and the turns in it.
    """
    before = machine.describe()
    use_threads(1)  # learning waits for all, and should not do so by spinning
    with _local_ray(sum(config.runners) + config.process_runners + 1), ExitStack() as stack:
        progress("starting env runners", 0, 1)
        algorithms = {}
        for name, settings in _variants(config):
            algorithms[name] = settings.build_algo()
            stack.callback(algorithms[name].stop)
        groups = {
            group: _measured(group, config, _calls(group, algorithms), progress)
            for group in ("collection", "training")
        }
        memory = {name: _memory(algorithm) for name, algorithm in algorithms.items()}
    return RllibResult(machine=before, load_after=machine.load(), groups=groups, memory=memory)


@contextmanager
def _local_ray(cpus: int) -> Iterator[None]:
    """Ray on this machine alone, which tells nobody that it is used.

    It is told of more processors than there are: all env runners must be alive, but take turns.
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
        yield f"{_players(runners)}, {POOLS}", _settings(config, runners)
    usual = _settings(config, config.process_runners)
    usual.environment(f"cagepool:{ENVIRONMENT_ID}", env_config={"red": RED})
    usual.env_runners(gym_env_vectorize_mode="async")
    yield f"{_players(config.process_runners)}, {PROCESSES}", usual


def _players(runners: int) -> str:
    return f"{runners} env runners" if runners else "no env runners"


def _settings(config: RllibConfig, runners: int) -> Any:
    games = config.games // max(1, runners)
    return ppo_config(runners, games, fragment=config.steps, seed=0, red=RED)


def _calls(group: str, algorithms: dict[str, Any]) -> dict[str, Callable[[], object]]:
    if group == "training":
        return {name: algorithm.train for name, algorithm in algorithms.items()}
    return {name: partial(_collect, algorithm) for name, algorithm in algorithms.items()}


def _collect(algorithm: Any) -> None:
    """Let all env runners play a fragment at once; what they saw stays with them."""
    _everywhere(algorithm, _play)


def _play(runner: Any) -> None:
    runner.sample()


def _everywhere(algorithm: Any, call: Callable[[Any], Any]) -> list[Any]:
    """What a function makes of each env runner that has games."""
    is_local = algorithm.config.num_env_runners == 0
    found: list[Any] = algorithm.env_runner_group.foreach_env_runner(
        call, local_env_runner=is_local
    )
    return found


def _measured(
    group: str,
    config: RllibConfig,
    calls: dict[str, Callable[[], object]],
    progress: Callable[[str, int, int], object],
) -> list[Measurement]:
    settings: Settings = {"games": config.games, "steps": config.steps, "red": RED}
    contenders = [
        Contender(
            name=name, settings=settings, steps=config.games * config.steps, clock=timed(call)
        )
        for name, call in calls.items()
    ]
    turns = len(contenders) * config.pace.repetitions
    done = iter(range(1, turns + 1))
    progress(group, 0, turns)
    return compare(contenders, config.pace, lambda: progress(group, next(done), turns))


def _memory(algorithm: Any) -> dict[str, float]:
    if not algorithm.config.num_env_runners:
        return {}
    held = _everywhere(algorithm, _held)
    return {
        "env_runners": len(held),
        "processes": sum(processes for processes, _ in held),
        "megabytes": round(sum(megabytes for _, megabytes in held)),
    }


def _held(_runner: Any) -> tuple[int, float]:
    """Processes of an env runner, and their memory in megabytes."""
    pids = list(family())
    return len(pids), memory_bytes(pids) / 2**20
