"""What a step of all environments moves: messages between processes, and bytes in arrays."""

from collections.abc import Callable
from math import prod
from typing import Any

from cagepool.bench.profile.instruments import Instruments
from cagepool.envs import NativeVectorEnv, WorkerVectorEnv
from cagepool.envs.make import AnyVectorEnv
from cagepool.envs.space_tree import map_tree

OUTCOME_BYTES = 8 + 1 + 1  # of an environment: reward, terminated, truncated


class Traffic:
    """Messages through pipes, counted one by one, and bytes in arrays, by their layout."""

    def __init__(self, envs: AnyVectorEnv, instruments: Instruments) -> None:
        """Count what goes through the pipes of these environments while the instruments are on."""
        self.messages = 0
        self.bytes = 0
        self._environments = envs.num_envs
        self._array_bytes = array_bytes(envs)
        if isinstance(envs, WorkerVectorEnv):
            for line in vars(envs)["_pool"].lines:
                instruments.put(line, "write", self._sending)
                instruments.put(line.reader, "read_bytes", self._receiving)
        for pipe in pipes_of(envs):
            instruments.put(pipe, "_send_bytes", self._sending)
            instruments.put(pipe, "_recv_bytes", self._receiving)

    def per_step(self, steps: int) -> dict[str, float]:
        """Of one step of all environments, after so many."""
        return {
            "environments": self._environments,
            "messages": self.messages / steps,
            "message_bytes": self.bytes / steps,
            "array_bytes": self._array_bytes,
        }

    def _sending(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def sent(content: Any, *others: Any) -> Any:
            self._add(len(content))
            return send(content, *others)

        return sent

    def _receiving(self, receive: Callable[..., Any]) -> Callable[..., Any]:
        def received(*arguments: Any) -> Any:
            content = receive(*arguments)
            self._add(len(content) if isinstance(content, bytes) else content.getbuffer().nbytes)
            return content

        return received

    def _add(self, size: int) -> None:
        self.messages += 1
        self.bytes += size


def pipes_of(envs: AnyVectorEnv) -> list[Any]:
    """The pipes of Gymnasium's AsyncVectorEnv; none of any other."""
    return list(getattr(envs, "parent_pipes", ()))


def array_bytes(envs: AnyVectorEnv) -> float:
    """Bytes that a step writes into arrays which both sides see, by their layout.

    What only ends of episodes write is left out, and so is the true state of native games, of which
    the core writes what has changed.
    """
    if isinstance(envs, NativeVectorEnv):
        batch = envs.batch
        written = (batch.observations, batch.rewards, batch.truncations, batch.moves)
        return sum(array.nbytes for array in (*written, batch.alignment, batch.counters))
    if isinstance(envs, WorkerVectorEnv):
        return _block_bytes(vars(envs)["_pool"])
    if not pipes_of(envs):
        return 0
    space = envs.observation_space
    assert space.shape is not None
    assert space.dtype is not None
    return prod(space.shape) * space.dtype.itemsize


def _block_bytes(pool: Any) -> float:
    sizes: list[int] = []
    for tree in (pool.arrays.observations, pool.arrays.actions):
        map_tree(lambda array: sizes.append(array.nbytes), tree)
    truth = pool.arrays.true_state.nbytes + pool.arrays.ages.nbytes
    mode = pool.config.true_state
    looks = {"every": 1.0, "end": 0.0, "never": 0.0}[mode] if isinstance(mode, str) else 1 / mode
    return float(sum(sizes) + OUTCOME_BYTES * pool.num_envs + looks * truth)
