"""Which methods of environments are which stage."""

from cagepool.bench.profile.clock import Stage, StageClock
from cagepool.bench.profile.instruments import Instruments
from cagepool.bench.profile.traffic import pipes_of
from cagepool.envs import NativeVectorEnv, WorkerVectorEnv
from cagepool.envs.make import AnyVectorEnv

IN_THE_CORE = (
    "compliance is worked out inside the core's step and is part of it; what it costs is measured "
    "by `cagepool bench engine`"
)
IN_WORKERS = "what environments do in worker processes is seen from outside only, as waiting"


def watch_envs(instruments: Instruments, clock: StageClock, envs: AnyVectorEnv) -> None:
    """Tell the step of environments from all that carries it."""
    instruments.watch(clock, envs, "step", Stage.TRANSPORT)
    if isinstance(envs, NativeVectorEnv):
        instruments.watch(clock, envs.batch, "step", Stage.STEP)
    elif isinstance(envs, WorkerVectorEnv):
        pool = vars(envs)["_pool"]
        instruments.watch(clock, pool, "poll", Stage.WAITING)
        instruments.watch(clock, pool, "_read_answers", Stage.TRANSPORT)
    for pipe in pipes_of(envs):
        instruments.watch(clock, pipe, "_recv_bytes", Stage.WAITING)
    for env in getattr(envs, "envs", ()):  # of Gymnasium's SyncVectorEnv
        instruments.watch(clock, env, "step", Stage.STEP)
        instruments.watch(clock, env, "reset", Stage.STEP)


def notes_on(envs: AnyVectorEnv) -> list[str]:
    """What a reader of the table must know."""
    if isinstance(envs, NativeVectorEnv):
        return [IN_THE_CORE] if len(envs.counters) else []
    return [] if hasattr(envs, "envs") else [IN_WORKERS]
