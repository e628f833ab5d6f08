"""Cost of reading the true state, by period and form: array or CybORG's dictionary."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from cagepool.bench.measure import (
    Contender,
    Figures,
    MakeContender,
    Pace,
    Progress,
    measure_groups,
    random_actions,
    time_calls,
)
from cagepool.bench.schema import Groups, rates
from cagepool.cyborg import CybORGEnv, CybORGNotFoundError
from cagepool.envs import make_vec
from cagepool.envs.single import Cage2Env
from cagepool.envs.vector_args import EnvFn

PRELOAD = ("benchmarks.suites.scripts.preload_cyborg",)
Period: TypeAlias = Literal["never", "every", "twice", "end"] | int
Read: TypeAlias = Callable[[], object]
LABELS = {"every": "every step", "twice": "twice per step", "end": "at the end"}


@dataclass(frozen=True, kw_only=True)
class TrueStateConfig:
    """Settings of this bench."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=5, seconds=0.2))
    games: int = 20
    """Native games, or environments with one native game each."""
    cyborg_envs: int = 4
    """CybORG environments, if CybORG is installed."""
    max_steps: int = 20
    """Steps per episode; whole episodes are measured, resets included."""
    period: int = 10
    """Steps between two reads, where not every step is read."""
    workers: int = 2


def measure_true_state(config: TrueStateConfig, progress: Progress) -> Figures:
    """Measure each backend with native games and, if it is installed, CybORG."""
    groups = measure_groups(_groups(config), config.pace, progress, PRELOAD)
    return Figures(groups=groups, ratios=true_state_ratios(groups))


def true_state_ratios(groups: Groups) -> dict[str, float]:
    """Throughput with each way of reading, divided by that without; arrays by dictionaries."""
    ratios = {}
    for group, measurements in groups.items():
        rate = rates(measurements)
        for name in rate.keys() - {"off"}:
            ratios[f"{group}: {name} / off"] = rate[name] / rate["off"]
        once = rate["dictionary, every step"]
        ratios[f"{group}: array / dictionary, every step"] = rate["array, every step"] / once
        twice = rate[f"dictionary, {LABELS['twice']}"]
        ratios[f"{group}: dictionary, once / twice per step"] = once / twice
    return {name: round(ratios[name], 3) for name in sorted(ratios)}


def _groups(config: TrueStateConfig) -> Iterator[tuple[str, list[MakeContender]]]:
    yield "native games, native", list(_native(config))
    engine: EnvFn = partial(Cage2Env, max_steps=config.max_steps)
    yield from _backends("native games", [engine] * config.games, config)
    try:
        CybORGEnv()
    except CybORGNotFoundError:
        return
    cyborg: EnvFn = partial(CybORGEnv, max_steps=config.max_steps)
    yield from _backends("CybORG", [cyborg] * config.cyborg_envs, config)


def _backends(
    kind: str, env_fns: list[EnvFn], config: TrueStateConfig
) -> Iterator[tuple[str, list[MakeContender]]]:
    for backend in ("sync", "pipes"):
        yield f"{kind}, {backend}", list(_gymnasium(backend, env_fns, config))
    yield f"{kind}, workers", list(_workers(env_fns, config))


def _forms_and_periods(config: TrueStateConfig) -> Iterator[tuple[str, Period]]:
    for form in ("array", "dictionary"):
        for period in ("every", "twice", config.period, "end"):
            yield form, period


def _native(config: TrueStateConfig) -> Iterator[MakeContender]:
    """Native games: the arrays are views, so a read is a copy of them."""
    envs = make_vec(config.games, max_steps=config.max_steps)
    reads: dict[str, Read] = {
        "array": partial(_copy, envs.batch.true_state),
        "dictionary": lambda: [envs.true_state_dict(game) for game in range(config.games)],
    }
    episodes = partial(Episodes, max_steps=config.max_steps)
    yield episodes(lambda _: envs, None, "never")
    for form, period in _forms_and_periods(config):
        yield episodes(lambda _: envs, form, period, reads[form])


def _gymnasium(
    backend: str, env_fns: list[EnvFn], config: TrueStateConfig
) -> Iterator[MakeContender]:
    """Gymnasium's vector environments: `call` reads the environments one by one."""
    shared = _Shared(lambda: make_vec(len(env_fns), env=env_fns, backend=backend))  # type: ignore[call-overload]
    episodes = partial(Episodes, max_steps=config.max_steps)
    yield episodes(shared, None, "never")
    for form, period in _forms_and_periods(config):
        yield episodes(shared, form, period, partial(_call, shared, form))


def _workers(env_fns: list[EnvFn], config: TrueStateConfig) -> Iterator[MakeContender]:
    """Workers: arrays are sent with the observations, dictionaries are read with `call`."""

    def make(mode: Any) -> "_Shared":
        pool = partial(make_vec, len(env_fns), env=env_fns, backend="workers")
        return _Shared(lambda: pool(workers=config.workers, true_state=mode))

    plain, every = make("never"), make("every")
    episodes = partial(Episodes, max_steps=config.max_steps)
    yield episodes(plain, None, "never")
    for form, period in _forms_and_periods(config):
        if form == "dictionary":
            yield episodes(plain, form, period, partial(_call, plain, form))
            continue
        pool = every if period in ("every", "twice") else make(period)
        yield episodes(pool, form, period, partial(_copy_sent, pool))


class _Shared:
    """Vector environment that several contenders share; created on first use."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.envs: Any = None

    def __call__(self, stack: ExitStack) -> Any:
        if self.envs is None:
            self.envs = self._make()
            stack.callback(self.envs.close)
        return self.envs


def _call(shared: _Shared, form: str) -> object:
    return shared.envs.call("true_state" if form == "array" else "true_state_dict")


def _copy_sent(shared: _Shared) -> object:
    return _copy(shared.envs.true_state)


def _copy(states: NDArray[Any]) -> object:
    return states.view(f"V{states.itemsize}").copy()  # much faster than a copy by field


@dataclass(frozen=True)
class Episodes:
    """Contender that plays whole episodes with random actions and reads the true state."""

    make: Callable[[ExitStack], Any]
    form: str | None
    period: Period
    read: Read = lambda: None
    max_steps: int = field(kw_only=True)

    def __call__(self, stack: ExitStack) -> Contender:
        """Create and reset the environments."""
        envs = self.make(stack)
        envs.reset(seed=0)
        label = LABELS.get(str(self.period), f"every {self.period} steps")
        return Contender(
            name=f"{self.form}, {label}" if self.form else "off",
            settings={"environments": envs.num_envs, "max_steps": self.max_steps},
            steps_per_call=envs.num_envs * self.max_steps,
            timer=time_calls(partial(self._play, envs, random_actions(envs.num_envs))),
        )

    def _play(self, envs: Any, actions: NDArray[Any]) -> None:
        """Play one episode per environment; all begin and end together."""
        twice, read, period = self.period == "twice", self.read, self._steps_per_read
        for step in range(1, self.max_steps + 1):
            if twice:
                read()
            envs.step(actions[step % len(actions)])
            if period and step % period == 0:
                read()
        envs.step(actions[0])  # resets the environments

    @property
    def _steps_per_read(self) -> int:
        """Steps between two reads after a step; 0: none."""
        if isinstance(self.period, int):
            return self.period
        return {"never": 0, "every": 1, "twice": 1, "end": self.max_steps}[self.period]
