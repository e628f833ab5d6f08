"""Where the time of a training run goes."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from cagepool import runs
from cagepool.bench.profile.clock import Spot, Stage, StageClock
from cagepool.bench.profile.instruments import Instruments
from cagepool.bench.profile.places import notes_on, watch_envs
from cagepool.bench.profile.result import Profile, Subject, result_of
from cagepool.bench.profile.slices import Slices
from cagepool.bench.profile.traffic import Traffic
from cagepool.train import runner
from cagepool.train.collectors import LocalCrew
from cagepool.train.logging import Recorder
from cagepool.train.ppo import Trainer
from cagepool.train.rollout_worker import Station


def profile_training(
    run: runs.Run, listener: runner.Listener, should_stop: Callable[[], bool]
) -> Profile:
    """Train a run as `runner.train` does, and tell where the time went.

    Every step of every slice, which is what is collected for an update, can't be looked into for
    nothing; see `Slices`.

    Raises:
        ValueError: the run can't be trained.
    """
    subject = Subject.now("train", run.settings)
    clock = StageClock()
    slices = Slices(clock, Spot("Collector.collect", Stage.STORING))
    with ExitStack() as stack:
        watched = _Watched(clock, slices, stack)
        stack.enter_context(watched.instruments(listener))
        with clock.running(Spot("train", Stage.OTHER)):
            runner.train(run, listener, should_stop)
    return result_of(subject, clock, slices, watched.traffic_per_step(), watched.notes)


class _Watched:
    """Puts instruments on what a session makes, as it makes it."""

    def __init__(self, clock: StageClock, slices: Slices, stack: ExitStack) -> None:
        self.notes: list[str] = []
        self._clock = clock
        self._slices = slices
        self._stack = stack
        self._traffic: Traffic

    def instruments(self, listener: runner.Listener) -> Instruments:
        found, clock = Instruments(), self._clock
        found.put(runner, "Trainer", self._making(Trainer, self._follow_trainer))
        found.put(runner, "Recorder", self._making(Recorder, self._follow_recorder))
        found.watch(clock, runner, "check", Stage.CHECKS)
        found.watch(clock, runner, "write_outcome", Stage.CHECKS)
        found.watch(clock, runs.Run, "save_checkpoint", Stage.LOGGING)
        found.watch(clock, listener, "updated", Stage.LOGGING)
        found.watch(clock, listener, "checked", Stage.LOGGING)
        return found

    def traffic_per_step(self) -> dict[str, float]:
        return self._traffic.per_step(self._slices.turns[0].steps)

    def _making(self, kind: type[Any], follow: Callable[[Any], Instruments]) -> Any:
        made = self._clock.watched(kind, Spot(kind.__name__, Stage.START))

        def make(*arguments: Any) -> Any:
            result = made(*arguments)
            self._stack.enter_context(follow(result))
            return result

        return lambda _: make

    def _follow_recorder(self, recorder: Recorder) -> Instruments:
        found = Instruments()
        for method in ("update", "check", "close"):
            found.watch(self._clock, recorder, method, Stage.LOGGING)
        return found

    def _follow_trainer(self, trainer: Trainer) -> Instruments:
        crew = trainer.crew
        if not isinstance(crew, LocalCrew):
            trainer.close()
            raise ValueError(
                "a profile needs games that this process plays or has played by its workers, "
                f"got backend {trainer.config.env.backend}"
            )
        found, clock, station = Instruments(), self._clock, crew.station
        self.notes += notes_on(station.collector.envs)
        self._traffic = Traffic(station.collector.envs, self._slices.first)
        _watch_collecting(self._slices.instruments, clock, station)
        _watch_learning(found, clock, trainer)
        found.put(station.collector, "collect", self._sliced)
        for rollout in station.rollouts:
            found.watch(clock, rollout, "begin", Stage.STORING)
        found.put(vars(trainer.learner)["_executor"], "submit", self._awaited)
        if trainer.config.ppo.overlap:
            found.put(vars(crew)["_executor"], "submit", self._awaited)
        return found

    def _sliced(self, collect: Callable[..., Any]) -> Callable[..., Any]:
        def run(actor: Any, rollout: Any, rng: Any) -> Any:
            return self._slices.run(lambda: collect(actor, rollout, rng), lambda: rollout.steps)

        return run

    def _awaited(self, submit: Callable[..., Any]) -> Callable[..., Any]:
        """Count as waiting what the result of another thread is waited for."""
        spot = Spot("Future.result", Stage.WAITING)

        def submitted(*arguments: Any) -> Any:
            future = submit(*arguments)
            future.result = self._clock.watched(future.result, spot)
            return future

        return submitted


def _watch_collecting(instruments: Instruments, clock: StageClock, station: Station) -> None:
    """Tell apart what happens in every step of training."""
    collector = station.collector
    watch_envs(instruments, clock, collector.envs)
    instruments.watch(clock, collector, "_choose", Stage.SAMPLING)
    instruments.watch(clock, vars(station)["_actor"], "run", Stage.FORWARD)
    if collector.tracker is not None:
        instruments.watch(clock, collector.tracker, "update", Stage.TRUTH)


def _watch_learning(instruments: Instruments, clock: StageClock, trainer: Trainer) -> None:
    """Tell apart what happens once an update."""
    instruments.watch(clock, trainer, "close", Stage.START)
    instruments.watch(clock, trainer.learner, "update", Stage.UPDATE)
    instruments.watch(clock, trainer.learner, "rows", Stage.ADVANTAGE)
    for gradient in vars(trainer.learner)["_gradients"]:  # one for each thread
        instruments.watch(clock, gradient, "write", Stage.UPDATE)
