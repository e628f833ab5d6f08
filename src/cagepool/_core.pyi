"""The game of CAGE Challenge 2, natively."""

from collections.abc import Sequence
import enum
from typing import Annotated, overload

import numpy
import numpy.typing
from numpy.typing import NDArray


HOST_COUNT: int = 13

SUBNET_COUNT: int = 3

ACTION_COUNT: int = 145

RED_ACTION_COUNT: int = 44

OBSERVATION_SIZE: int = 52

COUNTER_COUNT: int = 5

TYPE_COUNT: int = 5

ORDER_COUNT: int = 120

COMPILER: str = '12.2.0'

GAME_BYTES: int = 88

TRUE_STATE_BYTES: int = 110

MOVES_BYTES: int = 8

TRACE_ROW_BYTES: int = 208

MAX_STEPS: int = 65535

RESTORE_TENTHS: int = 10

OUTAGE_TENTHS: int = 100

SESSION_HOST: int = 15

SESSION_ALIVE: int = 16

SESSION_PRIVILEGED: int = 32

SESSION_SEEN: int = 64

SESSION_SSH: int = 128

class Edition(enum.IntEnum):
    V21 = 0

    LEADERBOARD = 1

class Red(enum.IntEnum):
    B_LINE = 0

    MEANDER = 1

    SLEEP = 2

    GIVEN = 3

class RedKind(enum.IntEnum):
    SLEEP = 0

    SWEEP = 1

    SCAN = 2

    EXPLOIT = 3

    ESCALATE = 4

    IMPACT = 5

class BlueKind(enum.IntEnum):
    SLEEP = 0

    MONITOR = 1

    ANALYSE = 2

    REMOVE = 3

    DECOY = 4

    RESTORE = 5

class Autoreset(enum.Enum):
    NEXT_STEP = 0

    SAME_STEP = 1

    DISABLED = 2

class Knowledge(enum.Enum):
    TRUE = 0

    OBSERVED = 1

class Definition(enum.Enum):
    HOST = 0

    SEED = 1

def host_loss_tenths() -> list[int]:
    """
    Tenths of reward that blue loses per step while red is privileged, by host.
    """

def true_state_fields() -> list[tuple[str, str, int, int]]:
    """Members of a true state: name, NumPy type, offset, count."""

def moves_fields() -> list[tuple[str, str, int, int]]:
    """Members of a step's moves: name, NumPy type, offset, count."""

def trace_fields() -> list[tuple[str, str, int, int]]:
    """Members of a replayed step: name, NumPy type, offset, count."""

def blue_action(index: int) -> tuple[BlueKind, int, int, bool]:
    """
    Kind, host, decoy and whether the host can ever take that decoy, of one of blue's actions.
    """

def red_action(index: int) -> tuple[RedKind, int]:
    """Kind and target of one of red's actions."""

def replay(*, red: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], green: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], edition: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], blue_action: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], green_host: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu', writable=False)], red_target: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu', writable=False)], exploit: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu', writable=False)], detected: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu', writable=False)], esc_pick: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """Play recorded games again, writing a row for each step."""

class Batch:
    """Many games stepped together into arrays that the caller owns."""

    def __init__(self, *, seeds: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], horizons: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], reds: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], editions: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], greens: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], float_observations: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')] | None, byte_observations: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')] | None, rewards: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], truncations: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu')], moves: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], true_state: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], float_final_observations: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')] | None, byte_final_observations: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')] | None, episode_returns: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], episode_lengths: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], orders: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')] | None, counters: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')] | None, episode_counters: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')] | None, alignment: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None, autoreset: Autoreset, knowledge: Knowledge, definition: Definition, alignment_lambda: float, threads: int) -> None: ...

    @property
    def games(self) -> int: ...

    @property
    def threads(self) -> int: ...

    def step(self, actions: numpy.typing.NDArray[numpy.int64], red_actions: numpy.typing.NDArray[numpy.int64] | None = None, ids: numpy.typing.NDArray[numpy.int64] | None = None) -> int:
        """
        Play one action in every game, or in those named; returns how many episodes ended.

        Raises:
            IndexError: an action or a game is out of range; nothing was played.
        """

    def reset(self, ids: numpy.typing.NDArray[numpy.int64], seeds: numpy.typing.NDArray[numpy.uint64] | None = None) -> None:
        """Start new episodes; with seeds, the first ones of new streams."""

    def reseed(self, ids: numpy.typing.NDArray[numpy.int64], seeds: numpy.typing.NDArray[numpy.uint64]) -> None:
        """Let the rest of the episode draw from other streams."""

    @overload
    def redirect(self, observations: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """Write observations here from now on."""

    @overload
    def redirect(self, observations: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

    def save(self, id: int) -> bytes:
        """One game as bytes."""

    def restore(self, ids: numpy.typing.NDArray[numpy.int64], blobs: list[bytes]) -> None:
        """Put saved games in the place of others."""

    def sessions(self, id: int) -> bytes:
        """A byte for each red session of the episode, in order of creation."""

    def stream_key(self, id: int) -> int:
        """Key of the random stream of the game's episode."""

    def steps(self, id: int) -> int:
        """Steps played in the game's episode."""

    def describe(self, rows: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """Write the state of every game as a trace has it."""

MEMORY_BYTES: int = 24

MEMORY_ORDER_OFFSET: int = 10

def draw(logits: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], masks: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')] | None, uniforms: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], log_probabilities: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Draw a choice in every row from the softmax of its logits, by one number in [0, 1).
    """

def loss_gradient(*, logits: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], minibatch: int, masks: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')] | None, chosen: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], log_probabilities: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], advantages: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], old_values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], returns: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], logits_gradient: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], values_gradient: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], clip: float, value_clip: float, entropy: float) -> tuple[float, float, float, float, float]:
    """
    Write the gradient of the mean loss of PPO over a minibatch for some of its rows, and return their part of the means of policy loss, value loss, entropy, KL and clipped ratios. `rows` picks from what was collected; logits and values are of these rows alone.
    """

class Inputs:
    """Policy inputs of many games, made of what blue saw and did."""

    def __init__(self, *, choices: Sequence[int], scans: bool, decoys: bool, last_action: bool, time: bool, order: bool, horizon: int) -> None: ...

    @property
    def size(self) -> int: ...

    def advance(self, actions: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], observations: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], memories: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """Take note of what was played and of what blue saw next."""

    def write(self, observations: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], memories: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], inputs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], masks: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')] | None) -> None:
        """
        Write a row of inputs, and one of masks unless there is none, for each game.
        """

ALL_WORD: int = -1

MESSAGE_WORD: int = -2

class Waiter:
    """Waits until a descriptor can be read."""

    def __init__(self, descriptor: int, *, looks: bool) -> None: ...

    def wait(self, limit_s: float) -> bool:
        """Whether it can be read within the limit; a negative one is none."""

class StepLoop:
    """The loop of a worker process over its environments."""

    def __init__(self, *, steps: list[object], take: object, put: object, finish: object, carried: object, no_numpy: object, observations: object | None, rewards: object, terminations: object, truncations: object, states: object, mark: object, first: int, plain: bool) -> None: ...

    def serve(self, requests: int, answers: int, *, looks: bool) -> bytes:
        """
        Answer requests until one is a message; returns its bytes, none if there are no more.
        """

    def answer(self, answers: int, words: bytes) -> bool:
        """Step these environments and answer; false: nobody hears it."""
