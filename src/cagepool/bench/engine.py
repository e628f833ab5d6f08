"""Throughput of the native games: calls from Python, random blue actions, 100-step episodes."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count, cycle, islice, product
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.bench.measure import (
    Contender,
    Figures,
    Pace,
    Progress,
    Timer,
    measure_interleaved,
    time_calls,
)
from cagepool.bench.schema import Groups, Measurement, find
from cagepool.envs import make_vec
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.sim import BELIEF_FEATURES, Batch, BatchConfig, BeliefConfig, BeliefFilter
from cagepool.sim.names import OFFICIAL_REDS
from cagepool.types import Int64s

ATTACKERS = ("B_lineAgent", "RedMeanderAgent")
FEW, MANY, MOST = 100, 4096, 65536  # games
ORDER, ALIGNMENT = "critical_first", 30.0
ACTION_SHIFT = 97
ACTION_ROWS = 64  # drawn before the measurement
SCENARIO_SIZES = (10, 20, 30, 40, 50, 60)  # hosts
SCENARIOS = 1000
WRITES_PER_UPDATE = 20  # of a belief: an update takes far longer than writing its features


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """Settings of this bench."""

    pace: Pace = field(default_factory=Pace)


def measure_engine(config: EngineConfig, progress: Progress) -> Figures:
    """Measure all groups; `progress` counts the repetitions of all of them."""
    groups = _groups()
    total = config.pace.repetitions * sum(map(len, groups.values()))
    finished = count(1)

    def advance(group: str) -> None:
        progress(group, next(finished), total)

    measured = {
        name: measure_interleaved(contenders, config.pace, partial(advance, name))
        for name, contenders in groups.items()
    }
    measured["busy"] = _measure_beside_busy_core(config.pace)
    return Figures(
        groups=measured,
        ratios=engine_ratios(measured),
        facts={
            "bytes_per_game": _core.GAME_BYTES,
            "bytes_of_true_state_per_game": _core.TRUE_STATE_BYTES,
        },
    )


def batch_timer(games: int, **settings: Any) -> Timer:
    """Return a timer of `Batch.step` with random actions."""
    batch = Batch(games, BatchConfig(**settings))
    batch.reset(np.arange(games, dtype=np.uint64))
    return _step_timer(batch.step, games, len(batch.layout.actions))


def batch_contender(
    games: int, *, red: str = "B_lineAgent", threads: int = 1, **more: Any
) -> Contender:
    """Create a batch of native games."""
    return Contender(
        name="Batch.step",
        settings={"games": games, "red": red, "threads": threads, **more},
        steps_per_call=games,
        timer=batch_timer(games, red=red, threads=threads, **more),
    )


def scenario_contenders() -> list[Contender]:
    """CAGE-2 compiled and by its tables, scenarios by size, and 1,000 scenarios in one batch."""
    by_tables = {"layout": Layout.of([CAGE2])}
    one = Scenario.generate(0)
    many = [Scenario.generate(seed) for seed in range(SCENARIOS)]
    layout = Layout.of(many)
    return [
        contender
        for red in ATTACKERS
        for contender in (
            _scenario_contender("CAGE-2, compiled", red, len(CAGE2.hosts)),
            _scenario_contender("CAGE-2, tables", red, len(CAGE2.hosts), **by_tables),
            *(
                _scenario_contender("generated", red, hosts, scenario=_scenario_of_size(hosts))
                for hosts in SCENARIO_SIZES
            ),
            _scenario_contender("one of many", red, len(one.hosts), scenario=one, layout=layout),
            _scenario_contender("1,000 different", red, 0, scenario=many, layout=layout),
        )
    ]


def _scenario_of_size(hosts: int) -> Scenario:
    """A random scenario with as many hosts, a third of them servers."""
    servers = (hosts - 3) // 3
    users = hosts - servers - 3  # Defender, Op_Server0 and one Op_Host
    return Scenario.generate(1, users=users, enterprise=servers, op_hosts=1)


def _scenario_contender(name: str, red: str, hosts: int, **more: Any) -> Contender:
    """Games of a scenario; `hosts` 0: of several sizes."""
    return Contender(
        name="Batch.step",
        settings={"games": MANY, "red": red, "scenario": name, "hosts": hosts, "threads": 1},
        steps_per_call=MANY,
        timer=batch_timer(MANY, red=red, threads=1, **more),
    )


def belief_contenders() -> list[Contender]:
    """Updates and features of the exact belief, by red and green."""
    return [
        _belief_contender(name, red=red, green=green)
        for red, green in product((*ATTACKERS, "mix"), (False, True))
        for name in ("BeliefFilter.update", "BeliefFilter.write_features")
    ]


def cost(group: Sequence[Measurement], name: str = "Batch.step", **settings: object) -> float:
    """Median nanoseconds per step of the only contender with these settings."""
    return find(group, name, **settings).nanoseconds_per_step.median


def engine_ratios(groups: Groups) -> dict[str, float]:
    """Ratios that documents cite."""
    ratios = (
        *_call_and_thread_ratios(groups),
        *_compliance_ratios(groups),
        *scenario_ratios(groups),
        *_vector_env_ratios(groups),
    )
    return {name: round(value, 3) for name, value in ratios}


def scenario_ratios(groups: Groups) -> Iterator[tuple[str, float]]:
    """Ratios of the group `scenarios`."""
    group = groups["scenarios"]
    for red in ATTACKERS:
        compiled = cost(group, red=red, scenario="CAGE-2, compiled")
        tables = cost(group, red=red, scenario="CAGE-2, tables")
        one = cost(group, red=red, scenario="one of many")
        many = cost(group, red=red, scenario="1,000 different")
        yield f"cost of CAGE-2 by tables / compiled, {red}", tables / compiled
        yield f"rate of 1,000 scenarios / one, {red}", one / many


def _groups() -> dict[str, list[Contender]]:
    orders: list[dict[str, Any]] = [{}, {"order": ORDER}, {"order": ORDER, "alignment": ALIGNMENT}]
    options: list[dict[str, Any]] = [{}, {"green": True}, {"observation_dtype": "uint8"}]
    batch = batch_contender
    return {
        "batch": [batch(n, red=red) for n in (1, FEW, 1000, MANY, MOST) for red in OFFICIAL_REDS],
        "vector": [
            contender
            for games, red in product((1, FEW, MANY), ATTACKERS)
            for contender in (batch(games, red=red), _vector_env(games, red=red))
        ],
        "call": [batch(games, red="SleepAgent") for games in (1, 2)],
        "threads": [batch(games, threads=t) for games in (MANY, MOST) for t in (1, 2)],
        "compliance": [
            contender
            for games, more in product((FEW, MANY), orders)
            for contender in (batch(games, **more), _vector_env(games, **more))
        ],
        "options": [batch(MANY, **more) for more in options],
        "scenarios": scenario_contenders(),
        "belief": belief_contenders(),
        "limit": [make(games) for make in (batch, _outputs_only) for games in (MANY, MOST)],
    }


def _step_timer(
    step: Callable[[Int64s], object], games: int, actions_count: int = _core.ACTION_COUNT
) -> Timer:
    """Return a timer of `step` whose loop adds as little as possible."""
    actions = _random_actions(games, actions_count)

    def timer(calls: int, /) -> float:
        rows = list(islice(actions, calls))
        start = time.perf_counter()
        for row in rows:
            step(row)
        return time.perf_counter() - start

    return timer


def _random_actions(games: int, actions_count: int = _core.ACTION_COUNT) -> Iterator[Int64s]:
    """Overlapping slices of one array, which together use as much cache as one row."""
    actions = np.random.default_rng(0).integers(
        0, actions_count, games + ACTION_ROWS * ACTION_SHIFT
    )
    return cycle([actions[i * ACTION_SHIFT :][:games] for i in range(ACTION_ROWS)])


def _vector_env(games: int, *, red: str = "B_lineAgent", **more: Any) -> Contender:
    envs = make_vec(games, red=red, threads=1, **more)
    envs.reset(seed=0)
    return Contender(
        name="VectorEnv.step",
        settings={"games": games, "red": red, "threads": 1, **more},
        steps_per_call=games,
        timer=_step_timer(envs.step, games),
    )


def _belief_contender(name: str, *, red: str, green: bool) -> Contender:
    """A filter of 100 games of 100 steps; only the named call is timed."""
    batch = Batch(FEW, BatchConfig(red=red, green=green, autoreset="same_step", threads=1))
    batch.reset(np.arange(FEW, dtype=np.uint64))
    belief = BeliefFilter(FEW, BeliefConfig(green=green))
    rows = np.zeros((FEW, BELIEF_FEATURES), np.float32)
    actions = _random_actions(FEW)

    def update() -> float:
        """Play one step; returns the seconds of the update of the belief."""
        played = next(actions)
        is_last = batch.step(played) > 0  # all games end together
        observations = batch.final_observations if is_last else batch.observations
        start = time.perf_counter()
        belief.update(played, observations)
        seconds = time.perf_counter() - start
        if is_last:
            belief.reset()
        return seconds

    def write() -> float:
        start = time.perf_counter()
        belief.write_features(rows)
        return time.perf_counter() - start

    def time_updates(calls: int, /) -> float:
        return sum(update() for _ in range(calls))

    def time_writes(calls: int, /) -> float:
        seconds = 0.0
        for call in range(calls):
            if call % WRITES_PER_UPDATE == 0:
                update()
            seconds += write()
        return seconds

    return Contender(
        name=name,
        settings={"games": FEW, "red": red, "green": green, "threads": 1},
        steps_per_call=FEW,
        timer=time_updates if name == "BeliefFilter.update" else time_writes,
    )


def _outputs_only(games: int) -> Contender:
    """Lower bound of any engine: write observations, rewards, flags and moves."""
    batch = Batch(games)
    outputs = (batch.observations, batch.rewards, batch.truncations, batch.moves.view(np.uint8))

    def write() -> None:
        for output in outputs:
            output.fill(0)

    return Contender(
        name="outputs only",
        settings={"games": games, "threads": 1},
        steps_per_call=games,
        timer=time_calls(write),
    )


@contextmanager
def _busy_core() -> Iterator[None]:
    """Run a process that uses one core completely."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _measure_beside_busy_core(pace: Pace) -> list[Measurement]:
    with _busy_core():
        contenders = [batch_contender(MANY, threads=t) for t in (1, 2)]
        return measure_interleaved(contenders, pace, lambda: None)


def _call_and_thread_ratios(groups: Groups) -> Iterator[tuple[str, float]]:
    call = groups["call"]
    yield "nanoseconds per Batch.step call", 2 * (cost(call, games=1) - cost(call, games=2))
    threads = groups["threads"]
    for games in (MANY, MOST):
        gain = cost(threads, games=games, threads=1) / cost(threads, games=games, threads=2)
        yield f"speed-up with 2 threads, {games} games", gain
    gain = cost(groups["busy"], threads=1) / cost(groups["busy"], threads=2)
    yield f"speed-up with 2 threads, {MANY} games, beside a busy core", gain


def _compliance_ratios(groups: Groups) -> Iterator[tuple[str, float]]:
    group, limit = groups["compliance"], groups["limit"]
    for name, games in product(("Batch.step", "VectorEnv.step"), (FEW, MANY)):
        plain = cost(group, name, games=games, order=None)
        with_order = cost(group, name, games=games, order=ORDER, alignment=None)
        with_alignment = cost(group, name, games=games, order=ORDER, alignment=ALIGNMENT)
        yield f"{name}, cost with compliance / without, {games} games", with_order / plain
        yield f"{name}, cost with alignment / without, {games} games", with_alignment / plain
    for games in (MANY, MOST):
        writing = cost(limit, "outputs only", games=games)
        yield f"cost of writing outputs / step, {games} games", writing / cost(limit, games=games)


def _vector_env_ratios(groups: Groups) -> Iterator[tuple[str, float]]:
    for games, red in product((1, FEW, MANY), ATTACKERS):
        batch = cost(groups["vector"], games=games, red=red)
        vector_env = cost(groups["vector"], "VectorEnv.step", games=games, red=red)
        label = f"microseconds per call of VectorEnv.step above Batch.step, {games} games, {red}"
        yield label, games * (vector_env - batch) / 1000
