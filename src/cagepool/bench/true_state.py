"""What it costs to know the true state: how often, as an array or as CybORG's dictionary."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from cagepool.bench import machine
from cagepool.bench.contenders import random_actions
from cagepool.bench.measure import Contender, Pace, timed
from cagepool.bench.result import Result
from cagepool.bench.turns import Make, compared
from cagepool.cyborg import CybORGEnv, CybORGNotFoundError
from cagepool.envs import make_vec
from cagepool.envs.cage2_env import Cage2Env
from cagepool.envs.env_fns import EnvFn

When: TypeAlias = Literal["never", "every", "twice", "end"] | int
Look: TypeAlias = Callable[[], object]
WORDS = {"every": "every step", "twice": "twice a step", "end": "at the end"}


@dataclass(frozen=True, kw_only=True)
class TrueStateConfig:
    """What to measure."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=5, seconds=0.2))
    games: int = 20
    """Native games, or environments of one each."""
    cyborgs: int = 4
    """CybORG environments, if it is there."""
    max_steps: int = 20
    """Steps of an episode. Whole ones are timed, resets included."""
    every: int = 10
    """Steps between two looks, where not every step is looked at."""
    processes: int = 2
    """Workers."""


@dataclass(frozen=True, kw_only=True)
class TrueStateResult(Result):
    """Rates with the true state beside rates without it."""

    @property
    def ratios(self) -> dict[str, float]:
        """The figures that claims are made of, each from one group."""
        ratios = {}
        for group, (off, *others) in self.groups.items():
            for one in others:
                kept = one.steps_per_second / off.steps_per_second
                ratios[f"{group}: rate kept, {one.name}"] = round(kept, 3)
            rates = {one.name: one.steps_per_second for one in others}
            array, once = rates["array, every step"], rates["dictionary, every step"]
            ratios[f"{group}: array / dictionary, every step"] = round(array / once, 3)
            gain = once / rates["dictionary, twice a step"]
            ratios[f"{group}: dictionary once / twice a step"] = round(gain, 3)
        return ratios


def measure_true_state(
    config: TrueStateConfig, progress: Callable[[str, int, int], object]
) -> TrueStateResult:
    """Measure group after group; `progress` is told the group and the turns done and in all."""
    before = machine.describe()
    groups = compared(_groups(config), config.pace, progress)
    return TrueStateResult(machine=before, load_after=machine.load(), groups=groups)


def _groups(config: TrueStateConfig) -> Iterator[tuple[str, list[Make]]]:
    yield "native games, native", list(_in_the_core(config))
    engine: EnvFn = partial(Cage2Env, max_steps=config.max_steps)
    yield from _of_kind("native games", [engine] * config.games, config)
    try:
        CybORGEnv()
    except CybORGNotFoundError:
        return
    original: EnvFn = partial(CybORGEnv, max_steps=config.max_steps)
    yield from _of_kind("CybORG", [original] * config.cyborgs, config)


def _of_kind(
    kind: str, makers: list[EnvFn], config: TrueStateConfig
) -> Iterator[tuple[str, list[Make]]]:
    for backend in ("sync", "pipes"):
        yield f"{kind}, {backend}", list(_by_calls(backend, makers, config))
    yield f"{kind}, workers", list(_by_workers(makers, config))


def _moments(config: TrueStateConfig) -> Iterator[tuple[str, When]]:
    """How a look is taken, and when."""
    for form in ("array", "dictionary"):
        for when in ("every", "twice", config.every, "end"):
            yield form, when


def _in_the_core(config: TrueStateConfig) -> Iterator[Make]:
    """The arrays are views, so that to look is to copy them."""
    envs = make_vec(config.games, max_steps=config.max_steps)
    looks: dict[str, Look] = {
        "array": partial(_copied, envs.batch.true_state),
        "dictionary": lambda: [envs.true_state_dict(game) for game in range(config.games)],
    }
    looking = partial(Looking, max_steps=config.max_steps)
    yield looking(lambda _: envs, None, "never")
    for form, when in _moments(config):
        yield looking(lambda _: envs, form, when, looks[form])


def _by_calls(backend: str, makers: list[EnvFn], config: TrueStateConfig) -> Iterator[Make]:
    """The environments are asked one by one, through Gymnasium."""
    once = _Once(lambda: make_vec(len(makers), env=makers, backend=backend))  # type: ignore[call-overload]
    looking = partial(Looking, max_steps=config.max_steps)
    yield looking(once, None, "never")
    for form, when in _moments(config):
        yield looking(once, form, when, partial(_call, once, form))


def _by_workers(makers: list[EnvFn], config: TrueStateConfig) -> Iterator[Make]:
    """Arrays come with the observation when they are asked for; dictionaries are called for."""

    def made(mode: Any) -> "_Once":
        make = partial(make_vec, len(makers), env=makers, backend="workers")
        return _Once(lambda: make(workers=config.processes, true_state=mode))

    plain, every = made("never"), made("every")
    looking = partial(Looking, max_steps=config.max_steps)
    yield looking(plain, None, "never")
    for form, when in _moments(config):
        if form == "dictionary":
            yield looking(plain, form, when, partial(_call, plain, form))
            continue
        carried = every if when in ("every", "twice") else made(when)
        yield looking(carried, form, when, partial(_carried, carried))


class _Once:
    """Makes a vector environment the first time that it is asked for, and closes it at the end."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.envs: Any = None

    def __call__(self, stack: ExitStack) -> Any:
        if self.envs is None:
            self.envs = self._make()
            stack.callback(self.envs.close)
        return self.envs


def _call(once: _Once, form: str) -> object:
    return once.envs.call("true_state" if form == "array" else "true_state_dict")


def _carried(once: _Once) -> object:
    return _copied(once.envs.true_state)


def _copied(states: NDArray[Any]) -> object:
    return states.view(f"V{states.itemsize}").copy()  # field by field takes far longer


@dataclass(frozen=True)
class Looking:
    """Plays whole episodes with random actions, and looks at the true state when it is time."""

    make: Callable[[ExitStack], Any]
    form: str | None
    when: When
    look: Look = lambda: None
    max_steps: int = field(kw_only=True)

    def __call__(self, stack: ExitStack) -> Contender:
        """Begin."""
        envs = self.make(stack)
        envs.reset(seed=0)
        moment = WORDS.get(str(self.when), f"every {self.when} steps")
        return Contender(
            name=f"{self.form}, {moment}" if self.form else "off",
            settings={"environments": envs.num_envs, "max_steps": self.max_steps},
            steps=envs.num_envs * self.max_steps,
            clock=timed(partial(self._play, envs, random_actions(envs.num_envs))),
        )

    def _play(self, envs: Any, actions: NDArray[Any]) -> None:
        """An episode in every environment; they begin and end together."""
        twice, look, period = self.when == "twice", self.look, self._period
        for turn in range(1, self.max_steps + 1):
            if twice:
                look()
            envs.step(actions[turn % len(actions)])
            if period and turn % period == 0:
                look()
        envs.step(actions[0])  # starts the next ones

    @property
    def _period(self) -> int:
        """Steps from one look after a step to the next; 0: there is none."""
        if isinstance(self.when, int):
            return self.when
        return {"never": 0, "every": 1, "twice": 1, "end": self.max_steps}[self.when]
