"""Native simulator of CAGE Challenge 2."""

from collections.abc import Sequence
import enum
from typing import Any

import numpy
import numpy.typing


HOST_COUNT: int = 13

SUBNET_COUNT: int = 3

ACTION_COUNT: int = 145

RED_ACTION_COUNT: int = 44

MAX_HOSTS: int = 64

MAX_SUBNETS: int = 16

OBSERVATION_SIZE: int = 52

COUNTER_COUNT: int = 5

TYPE_COUNT: int = 5

ORDER_COUNT: int = 120

COMPILER: str = '12.2.0'

GAME_BYTES: int = 88

TRUE_STATE_BYTES: int = 150

MAX_STEPS: int = 65535

RESTORE_TENTHS: int = 10

OUTAGE_TENTHS: int = 100

SSH_PORT: int = 1

MAIL_PORT: int = 64

TOP_EXPLOIT_SHARE: float = 0.75

DETECTED_SHARE: float = 0.9499999999534339

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

    MISINFORM = 6

class Autoreset(enum.Enum):
    NEXT_STEP = 0

    SAME_STEP = 1

    DISABLED = 2

class Knowledge(enum.Enum):
    TRUE = 0

    OBSERVED = 1

class Definition(enum.Enum):
    HOST = 0

    FIX_TYPE = 1

def simd_level() -> str:
    """
    Widest instruction set that the compiled code uses on this processor: x86-64-v4, x86-64-v3 or baseline.
    """

def host_loss_tenths() -> list[int]:
    """
    Tenths of reward that blue loses per step while red is privileged, by host.
    """

def b_line_plan() -> list[tuple[RedKind, int, int, list[int]]]:
    """
    Plan of B_lineAgent: per position the kind of its action, the positions after a failure and after a success, and the target by user host (User1 to User4).
    """

def host_services() -> list[tuple[int, int, int]]:
    """
    Exploit ports per host, as bits in ascending order of exploit weight: listening, and those whose genuine service yields a user account and a privileged account.
    """

def ports_of_decoys() -> list[tuple[int, int]]:
    """
    Port that each decoy opens, and port that must be free, as bits of `host_services`.
    """

def struct_layouts() -> dict[str, tuple[int, list[tuple[str, str, int, int]]]]:
    """
    Structs that cross as rows of bytes, by name: size in bytes, and members as (name, NumPy type, offset, number of values).
    """

def blue_action(index: int) -> tuple[BlueKind, int, int, bool]:
    """
    Kind, host and decoy of one of blue's actions, and whether the host can ever take the decoy.
    """

def red_action(index: int) -> tuple[RedKind, int]:
    """Kind and target of one of red's actions."""

class OutputCondition(enum.Enum):
    """Batches that have an output."""

    ALWAYS = 0

    SAME_STEP_RESET = 1

    ORDER = 2

TRUE_STATE_FEATURES: int = 275

def kind_bit(kind: BlueKind, decoy: int = 0) -> int:
    """Number of a kind of blue's actions; every decoy is one."""

class CompiledBatch:
    """Many games of CAGE-2 that are stepped together."""

    def __init__(self, *, scenarios: numpy.typing.NDArray[numpy.uint8], kinds: Sequence[int], slots: int, draws_scenarios: bool, configs: numpy.typing.NDArray[numpy.uint8], outputs: dict[str, numpy.typing.NDArray[Any]], autoreset: Autoreset, knowledge: Knowledge, definition: Definition, alignment_lambda: float, threads: int) -> None:
        """
        Create a batch that writes to these arrays.

        Args:
            scenarios: One row of `struct_layouts` per scenario, as rows of bytes.
            kinds: `kind_bit` of blue's kinds of actions, in the order of their indices.
            slots: Hosts in observations and in blue's actions.
            draws_scenarios: Draw a scenario for every episode; else game i plays scenario i modulo their number.
            configs: One game_config of `struct_layouts` per game, as rows of bytes.
            outputs: All arrays of `output_fields`, by name.

        Raises:
            TypeError: an array has another type or rank.
            ValueError: an array is missing, unknown or has another shape, or a value is not valid.
        """

    @staticmethod
    def output_fields() -> list[tuple[str, list[str], int, OutputCondition]]:
        """
        Arrays that a batch writes: name, possible NumPy types, columns (0: four per slot), condition.
        """

    @staticmethod
    def replay(*, scenarios: numpy.typing.NDArray[numpy.uint8], kinds: Sequence[int], slots: int, episodes: numpy.typing.NDArray[numpy.uint8], inputs: numpy.typing.NDArray[numpy.uint8], rows: numpy.typing.NDArray[numpy.uint8]) -> None:
        """
        Replay recorded games of the first scenario and write one row per step. Arguments are structs as rows of bytes: trace_episode, trace_input and trace_row of `struct_layouts`.
        """

    @property
    def games(self) -> int: ...

    @property
    def threads(self) -> int: ...

    def step(self, actions: numpy.typing.NDArray[numpy.int64], red_actions: numpy.typing.NDArray[numpy.int64] | None = None, ids: numpy.typing.NDArray[numpy.int64] | None = None) -> int:
        """
        Play one action in every game, or in the games `ids`; returns how many episodes ended.

        Raises:
            IndexError: an action or a game is out of range; no game was stepped.
        """

    def reset(self, ids: numpy.typing.NDArray[numpy.int64], seeds: numpy.typing.NDArray[numpy.uint64] | None = None) -> None:
        """Start new episodes; with seeds, the first ones of new random streams."""

    def reseed(self, ids: numpy.typing.NDArray[numpy.int64], seeds: numpy.typing.NDArray[numpy.uint64]) -> None:
        """Switch games to new random streams from their current step on."""

    def redirect_observations(self, observations: numpy.typing.NDArray[Any]) -> None:
        """
        Write observations to another array of the same type and shape from now on.
        """

    def save(self, id: int) -> bytes:
        """Return a snapshot of one game."""

    def restore(self, ids: numpy.typing.NDArray[numpy.int64], blobs: list[bytes]) -> None:
        """
        Replace games by snapshots; no game changes if any snapshot is refused.
        """

    def session_log(self, id: int) -> bytes:
        """
        Red's sessions of the episode, in order of creation: `session` of `struct_layouts`, as bytes.
        """

    def stream_key(self, id: int) -> int:
        """Key of the random stream of the game's episode."""

    def steps(self, id: int) -> int:
        """Steps played in the game's episode."""

    def write_trace_rows(self, rows: numpy.typing.NDArray[numpy.uint8]) -> None:
        """
        Write the state of every game: the fields `s_*` of one trace row per game.
        """

    def play_rollout(self, *, actor: MlpActor, parameters: numpy.typing.NDArray[numpy.float32], encoder: FeatureEncoder, belief: BeliefFilter | None, steps: int, uniforms: numpy.typing.NDArray[numpy.float32], features: numpy.typing.NDArray[numpy.float32], masks: numpy.typing.NDArray[numpy.uint8] | None, critic_features: numpy.typing.NDArray[numpy.float32] | None, chosen: numpy.typing.NDArray[numpy.int64], log_probabilities: numpy.typing.NDArray[numpy.float32], rewards: numpy.typing.NDArray[numpy.float32], histories: numpy.typing.NDArray[numpy.uint8], returns: numpy.typing.NDArray[numpy.float64], lengths: numpy.typing.NDArray[numpy.int64], reward_weights: numpy.typing.NDArray[numpy.float32] | None, reward_scale: float) -> tuple[int, int, int]:
        """
        Play `steps` steps in every game with an actor, on the actor's threads.

        The arrays are those of a rollout: one row per step and game, with those of one step more in `features`, `masks` and `critic_features`.

        Returns:
            Nanoseconds of the policy, of the games and of the features, summed over the threads.

        Raises:
            ValueError: an episode would end with these steps, or an array does not fit.
        """

    def write_critic_features(self, features: numpy.typing.NDArray[numpy.float32], critic_features: numpy.typing.NDArray[numpy.float32], final: bool = False) -> None:
        """
        Write the input of a critic, one row per game: the given features, then TRUE_STATE_FEATURES of the true state.

        Args:
            final: Write the last states of the last episodes that ended; autoreset same_step only.
        """

class TableBatch:
    """Many games of any scenarios that are stepped together."""

    def __init__(self, *, scenarios: numpy.typing.NDArray[numpy.uint8], kinds: Sequence[int], slots: int, draws_scenarios: bool, configs: numpy.typing.NDArray[numpy.uint8], outputs: dict[str, numpy.typing.NDArray[Any]], autoreset: Autoreset, knowledge: Knowledge, definition: Definition, alignment_lambda: float, threads: int) -> None:
        """
        Create a batch that writes to these arrays.

        Args:
            scenarios: One row of `struct_layouts` per scenario, as rows of bytes.
            kinds: `kind_bit` of blue's kinds of actions, in the order of their indices.
            slots: Hosts in observations and in blue's actions.
            draws_scenarios: Draw a scenario for every episode; else game i plays scenario i modulo their number.
            configs: One game_config of `struct_layouts` per game, as rows of bytes.
            outputs: All arrays of `output_fields`, by name.

        Raises:
            TypeError: an array has another type or rank.
            ValueError: an array is missing, unknown or has another shape, or a value is not valid.
        """

    @staticmethod
    def output_fields() -> list[tuple[str, list[str], int, OutputCondition]]:
        """
        Arrays that a batch writes: name, possible NumPy types, columns (0: four per slot), condition.
        """

    @staticmethod
    def replay(*, scenarios: numpy.typing.NDArray[numpy.uint8], kinds: Sequence[int], slots: int, episodes: numpy.typing.NDArray[numpy.uint8], inputs: numpy.typing.NDArray[numpy.uint8], rows: numpy.typing.NDArray[numpy.uint8]) -> None:
        """
        Replay recorded games of the first scenario and write one row per step. Arguments are structs as rows of bytes: trace_episode, trace_input and trace_row of `struct_layouts`.
        """

    @property
    def games(self) -> int: ...

    @property
    def threads(self) -> int: ...

    def step(self, actions: numpy.typing.NDArray[numpy.int64], red_actions: numpy.typing.NDArray[numpy.int64] | None = None, ids: numpy.typing.NDArray[numpy.int64] | None = None) -> int:
        """
        Play one action in every game, or in the games `ids`; returns how many episodes ended.

        Raises:
            IndexError: an action or a game is out of range; no game was stepped.
        """

    def reset(self, ids: numpy.typing.NDArray[numpy.int64], seeds: numpy.typing.NDArray[numpy.uint64] | None = None) -> None:
        """Start new episodes; with seeds, the first ones of new random streams."""

    def reseed(self, ids: numpy.typing.NDArray[numpy.int64], seeds: numpy.typing.NDArray[numpy.uint64]) -> None:
        """Switch games to new random streams from their current step on."""

    def redirect_observations(self, observations: numpy.typing.NDArray[Any]) -> None:
        """
        Write observations to another array of the same type and shape from now on.
        """

    def save(self, id: int) -> bytes:
        """Return a snapshot of one game."""

    def restore(self, ids: numpy.typing.NDArray[numpy.int64], blobs: list[bytes]) -> None:
        """
        Replace games by snapshots; no game changes if any snapshot is refused.
        """

    def session_log(self, id: int) -> bytes:
        """
        Red's sessions of the episode, in order of creation: `session` of `struct_layouts`, as bytes.
        """

    def stream_key(self, id: int) -> int:
        """Key of the random stream of the game's episode."""

    def steps(self, id: int) -> int:
        """Steps played in the game's episode."""

    def write_trace_rows(self, rows: numpy.typing.NDArray[numpy.uint8]) -> None:
        """
        Write the state of every game: the fields `s_*` of one trace row per game.
        """

    def play_rollout(self, *, actor: MlpActor, parameters: numpy.typing.NDArray[numpy.float32], encoder: FeatureEncoder, belief: BeliefFilter | None, steps: int, uniforms: numpy.typing.NDArray[numpy.float32], features: numpy.typing.NDArray[numpy.float32], masks: numpy.typing.NDArray[numpy.uint8] | None, critic_features: numpy.typing.NDArray[numpy.float32] | None, chosen: numpy.typing.NDArray[numpy.int64], log_probabilities: numpy.typing.NDArray[numpy.float32], rewards: numpy.typing.NDArray[numpy.float32], histories: numpy.typing.NDArray[numpy.uint8], returns: numpy.typing.NDArray[numpy.float64], lengths: numpy.typing.NDArray[numpy.int64], reward_weights: numpy.typing.NDArray[numpy.float32] | None, reward_scale: float) -> tuple[int, int, int]:
        """
        Play `steps` steps in every game with an actor, on the actor's threads.

        The arrays are those of a rollout: one row per step and game, with those of one step more in `features`, `masks` and `critic_features`.

        Returns:
            Nanoseconds of the policy, of the games and of the features, summed over the threads.

        Raises:
            ValueError: an episode would end with these steps, or an array does not fit.
        """

    def write_critic_features(self, features: numpy.typing.NDArray[numpy.float32], critic_features: numpy.typing.NDArray[numpy.float32], final: bool = False) -> None:
        """
        Write the input of a critic, one row per game: the given features, then TRUE_STATE_FEATURES of the true state.

        Args:
            final: Write the last states of the last episodes that ended; autoreset same_step only.
        """

BELIEF_FEATURES: int = 180

HYPOTHESIS_BYTES: int = 96

BELIEVABLE_REDS: int = 3

def decoy_ports() -> list[tuple[int, int]]:
    """
    Host and exploit of each port that decoys can open beside the genuine ones, in the order of `decoy_ports` in the probabilities of a belief.
    """

class BeliefFilter:
    """Exact beliefs about many games."""

    def __init__(self, *, games: int, prior: Sequence[float], edition: Edition, green: bool, capacity: int, threads: int) -> None: ...

    @property
    def games(self) -> int: ...

    def reset(self, ids: numpy.typing.NDArray[numpy.int64]) -> None:
        """Start new episodes."""

    def update(self, ids: numpy.typing.NDArray[numpy.int64], actions: numpy.typing.NDArray[numpy.int64], observations: numpy.typing.NDArray[Any]) -> None:
        """
        Add a step: blue's actions and the observations that followed, 52 float32 or uint8 per game or one uint64 per game with value k as bit k.
        """

    def write_features(self, ids: numpy.typing.NDArray[numpy.int64], features: numpy.typing.NDArray[numpy.float32], column: int) -> None:
        """Write BELIEF_FEATURES values per game of `ids`, from a column on."""

    def write_probabilities(self, rows: numpy.typing.NDArray[numpy.uint8]) -> None:
        """Write one struct `belief` of `struct_layouts` per game."""

    def write_states(self, states: numpy.typing.NDArray[numpy.uint8]) -> None:
        """Write one struct `belief_state` of `struct_layouts` per game."""

    def hypotheses(self, id: int) -> tuple[bytes, list[float]]:
        """
        Hypotheses of a game: structs `game` of `struct_layouts`, and their probabilities.
        """

    def saved_hypotheses(self) -> bytes:
        """Hypotheses of all games, HYPOTHESIS_BYTES each."""

    def restore(self, states: numpy.typing.NDArray[numpy.uint8], hypotheses: numpy.typing.NDArray[numpy.uint8]) -> None:
        """
        Replace the beliefs of all games by saved ones; nothing changes if they are refused.
        """

    def sample(self, id: int, seed: int, horizon: int) -> bytes:
        """Draw a game from the belief; returns a snapshot."""

    def write_probabilities_of(self, ids: numpy.typing.NDArray[numpy.int64], blobs: list[bytes], probabilities: numpy.typing.NDArray[numpy.float64]) -> None:
        """Write the probability of one snapshot per game of `ids`."""

    def totals(self) -> tuple[int, int, int, int, float]:
        """
        Updates, hypotheses after them, updates that left no red, dropped hypotheses and dropped probability, over the life of the filter.
        """

class Activation(enum.Enum):
    TANH = 0

    RELU = 1

class MlpLearner:
    """
    Actor and critic, two MLPs: PPO's gradient steps and the critic's values.

    `parameters` are one array: those of the actor, then those of the critic; `layers` has the place of each layer. No result depends on the number of threads.
    """

    def __init__(self, *, actor: Sequence[int], critic: Sequence[int], activation: Activation, threads: int) -> None: ...

    @property
    def size(self) -> int:
        """Number of parameters, padding included."""

    @property
    def layers(self) -> list[tuple[int, int, int, int]]:
        """
        Offset, inputs, outputs and stride per layer: weights, (inputs, stride), then biases, (stride).
        """

    def step(self, *, parameters: numpy.typing.NDArray[numpy.float32], exp_avg: numpy.typing.NDArray[numpy.float32], exp_avg_sq: numpy.typing.NDArray[numpy.float32], rows: numpy.typing.NDArray[numpy.int64], features: numpy.typing.NDArray[numpy.float32], critic_features: numpy.typing.NDArray[numpy.float32], masks: numpy.typing.NDArray[numpy.uint8] | None, chosen: numpy.typing.NDArray[numpy.int64], log_probabilities: numpy.typing.NDArray[numpy.float32], advantages: numpy.typing.NDArray[numpy.float32], old_values: numpy.typing.NDArray[numpy.float32], returns: numpy.typing.NDArray[numpy.float32], clip_range: float, clip_range_vf: float, ent_coef: float, max_grad_norm: float, learning_rate: float, steps: int) -> tuple[tuple[float, float, float, float, float], float]:
        """
        Take Adam's step number `steps` on the minibatch of these rows.

        Returns:
            Means of policy loss, value loss, entropy, KL divergence and share of clipped ratios; norm of the actor's gradient before clipping.
        """

    def write_gradient(self, *, parameters: numpy.typing.NDArray[numpy.float32], gradient: numpy.typing.NDArray[numpy.float32], rows: numpy.typing.NDArray[numpy.int64], features: numpy.typing.NDArray[numpy.float32], critic_features: numpy.typing.NDArray[numpy.float32], masks: numpy.typing.NDArray[numpy.uint8] | None, chosen: numpy.typing.NDArray[numpy.int64], log_probabilities: numpy.typing.NDArray[numpy.float32], advantages: numpy.typing.NDArray[numpy.float32], old_values: numpy.typing.NDArray[numpy.float32], returns: numpy.typing.NDArray[numpy.float32], clip_range: float, clip_range_vf: float, ent_coef: float) -> tuple[float, float, float, float, float]:
        """
        Write the gradient of the minibatch's mean loss, before clipping; returns the means as `step`.
        """

    def write_values(self, parameters: numpy.typing.NDArray[numpy.float32], features: numpy.typing.NDArray[numpy.float32], values: numpy.typing.NDArray[numpy.float32]) -> None:
        """Write the critic's value of each row of features."""

class MlpActor:
    """Actor of rollouts, an MLP. No result depends on the number of threads."""

    def __init__(self, *, widths: Sequence[int], activation: Activation, threads: int) -> None: ...

    @property
    def size(self) -> int:
        """Number of parameters, padding included."""

    @property
    def layers(self) -> list[tuple[int, int, int, int]]:
        """Offset, inputs, outputs and stride per layer, as in `MlpLearner`."""

    def sample(self, parameters: numpy.typing.NDArray[numpy.float32], features: numpy.typing.NDArray[numpy.float32], masks: numpy.typing.NDArray[numpy.uint8] | None, uniforms: numpy.typing.NDArray[numpy.float32], chosen: numpy.typing.NDArray[numpy.int64], log_probabilities: numpy.typing.NDArray[numpy.float32]) -> None:
        """
        Sample one choice per row of features, by one uniform number in [0, 1) per row.

        Raises:
            ValueError: a row allows no choice, or its logits are not numbers.
        """

    def write_logits(self, parameters: numpy.typing.NDArray[numpy.float32], features: numpy.typing.NDArray[numpy.float32], logits: numpy.typing.NDArray[numpy.float32]) -> None:
        """Write the logits of each row of features."""

SHARED_FEATURES: int = 21

def feature_groups() -> list[str]:
    """Names of the groups of features, in the order of a flat row."""

def slot_features() -> list[tuple[str, int]]:
    """
    Features of a slot after the facts of its host: names and numbers, in their order.
    """

def sample_choices(logits: numpy.typing.NDArray[numpy.float32], masks: numpy.typing.NDArray[numpy.uint8] | None, uniforms: numpy.typing.NDArray[numpy.float32], chosen: numpy.typing.NDArray[numpy.int64], log_probabilities: numpy.typing.NDArray[numpy.float32]) -> None:
    """
    Sample one choice per row from the softmax of its logits, by one uniform number in [0, 1) per row.

    Raises:
        ValueError: a row allows no choice, or has NaN.
    """

def ppo_loss_gradient(*, logits: numpy.typing.NDArray[numpy.float32], values: numpy.typing.NDArray[numpy.float32], rows: numpy.typing.NDArray[numpy.int64], minibatch_size: int, masks: numpy.typing.NDArray[numpy.uint8] | None, chosen: numpy.typing.NDArray[numpy.int64], log_probabilities: numpy.typing.NDArray[numpy.float32], advantages: numpy.typing.NDArray[numpy.float32], old_values: numpy.typing.NDArray[numpy.float32], returns: numpy.typing.NDArray[numpy.float32], logits_gradient: numpy.typing.NDArray[numpy.float32], values_gradient: numpy.typing.NDArray[numpy.float32], clip_range: float, clip_range_vf: float, ent_coef: float) -> tuple[float, float, float, float, float]:
    """
    Write the gradient of a minibatch's mean PPO loss for some of its rows.

    `logits` and `values` belong to `rows`, which are indices into the arrays of the rollout.

    Returns:
        Contribution of the rows to the means of policy loss, value loss, entropy, KL divergence and share of clipped ratios.
    """

class FeatureEncoder:
    """Encodes observations and histories of many games as policy features."""

    def __init__(self, *, slots: int, action_kinds: Sequence[int], action_slots: Sequence[int], choices: Sequence[int], possible: numpy.typing.NDArray[numpy.uint8], fitting: numpy.typing.NDArray[numpy.uint8], misinforms: numpy.typing.NDArray[numpy.uint8], revealed_by: numpy.typing.NDArray[numpy.uint64], facts: numpy.typing.NDArray[numpy.float32], sizes: numpy.typing.NDArray[numpy.float32], groups: Sequence[str], blocks: bool, horizon: int, appended: int) -> None:
        """
        Encode the games of some scenarios in one layout.

        Args:
            slots: Host slots of the layout.
            action_kinds: `kind_bit` of every action.
            action_slots: Its slot, or -1.
            choices: Action of each choice of the policy.
            possible: Whether a choice can work at some time, (scenarios, choices).
            fitting: Decoys that the host in a slot can take, as bits, (scenarios, slots).
            misinforms: Misinforms that find a free port there, (scenarios, slots).
            revealed_by: Slots of the hosts that reveal it, as bits, (scenarios, slots).
            facts: Features of a slot that never change, (scenarios * slots, facts).
            sizes: Shared features of a scenario, (scenarios, 2).
            groups: Groups of features, among `feature_groups`.
            blocks: Shared features, then a block per slot; else group by group.
            horizon: Episode length behind the features of time.
            appended: Features that the caller appends.
        """

    @property
    def size(self) -> int:
        """Features per game."""

    def update(self, actions: numpy.typing.NDArray[numpy.int64], observations: numpy.typing.NDArray[numpy.float32], histories: numpy.typing.NDArray[numpy.uint8]) -> None:
        """
        Add to each history the action that was played and the observation that followed.
        """

    def encode(self, observations: numpy.typing.NDArray[numpy.float32], histories: numpy.typing.NDArray[numpy.uint8], features: numpy.typing.NDArray[numpy.float32], masks: numpy.typing.NDArray[numpy.uint8] | None) -> None:
        """
        Write one row of features and, unless `masks` is None, one row of action masks per game.

        Raises:
            ValueError: a history is not one that `update` makes.
        """

ALL_WORD: int = -1

MESSAGE_WORD: int = -2

WAKE_WORD: int = -3

def exit_with_parent(life_pipe: int, parent_pidfd: int) -> None:
    """
    Start a thread that ends this process and its process group when its parent has ended, without the GIL.

    Args:
        life_pipe: File descriptor of a pipe that closes when the parent ends.
        parent_pidfd: Process file descriptor of the parent, or -1 where there is none.
    """

class Completions:
    """Completion flags in shared memory."""

    def __init__(self, *, flags: object, countdown: object) -> None:
        """Use one uint8 per environment, and one int32, which hold 0 at first."""

    def arm(self, count: int) -> bool:
        """
        Begin to wait for so many completions; False if they are there already.
        """

    def disarm(self) -> None:
        """Stop waiting."""

    def take(self, envs: object) -> int:
        """
        Write the environments whose step is done to an int32 array, clear their flags, and return their number.
        """

class SpinWait:
    """Spin-then-block wait until a file descriptor is readable."""

    def __init__(self, descriptor: int, *, spin: bool) -> None: ...

    def wait(self, timeout_s: float) -> bool:
        """
        Wait until the descriptor is readable; False if the timeout passed before. A negative timeout means no limit.
        """

    def wait_for(self, completions: Completions, count: int, timeout_s: float) -> None:
        """
        Wait in the same way until there are so many completions or the descriptor is readable.
        """

def rehearse(*, loop: tuple[float, float], worker: tuple[float, float], parent_s: float, workers: int, rounds: int, turn_s: float) -> list[tuple[float, float]]:
    """
    Measure a step of all environments in one loop and in workers, under the present load, without environments.

    Args:
        loop: Seconds that the loop computes and waits per step.
        worker: Seconds that each worker computes and waits per step.
        parent_s: Seconds that the parent of the workers computes per step.
        workers: Number of workers.
        rounds: Number of measurements.
        turn_s: Approximate duration of each side in a round.

    Returns:
        Seconds per step of the loop and of the workers, by round.
    """

class StepRequests:
    """Writes step requests to workers."""

    def __init__(self, *, worker_of_env: object, pipes: object) -> None:
        """
        Use an int32 array with the worker of each environment, and one with the pipe to each worker: below 0 while the worker must get no requests.
        """

    def write(self, envs: object) -> list[tuple[int, bytes]]:
        """
        Request steps of environments, an int64 array, whose indices must be valid. Returns the bytes that could not be written, with their workers.
        """

    def write_all(self) -> list[tuple[int, bytes]]:
        """
        Request one step of all environments, with one answer per worker; returns the same.
        """

class WorkerLoop:
    """Request loop of a worker process."""

    def __init__(self, *, steps: list[object], read_action: object, write_observation: object, finish_step: object, pack_infos: object, numpy_false: object, observations: object | None, rewards: object, terminations: object, truncations: object, needs_reset: object, current_env: object, completions: Completions, first_env: int, fast_path: bool) -> None:
        """
        Create the loop over the environments of a worker. A local index is that of an environment within the worker.

        Args:
            steps: Method `step` of each environment.
            read_action: `(local_index) -> action`.
            write_observation: `(local_index, observation)`; used if `observations` is None.
            finish_step: `(local_index, result or exception or None) -> pickled infos or None`; handles every step but the common one: episode not over, no infos.
            pack_infos: `(list of (environment, pickled infos)) -> bytes of a message`.
            numpy_false: `numpy.False_`.
            observations: The array of the observations, if they are one array.
            needs_reset: One byte per environment; not 0: `finish_step` handles the next step, with None.
            current_env: One int64, the index of the environment that is being stepped, or -1.
            completions: Flags of the environments of all workers.
            first_env: Index, among the environments of all workers, of this worker's first.
            fast_path: False: `finish_step` handles every step.
        """

    def serve(self, requests: int, answers: int, *, spin: bool) -> bytes:
        """
        Answer step requests until other bytes arrive, and return them; b"" if a pipe was closed.
        """

    def answer(self, answers: int, words: bytes) -> bool:
        """
        Step the environments that `words` name and answer; False if the answer pipe has no reader.
        """
