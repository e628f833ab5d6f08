"""Files of a run folder: their names, and one model per file for all writers and readers.

| file | model | written by |
|---|---|---|
| `config.json` | `ConfigFile` | `runs.create` |
| `metrics.csv`, `evaluations.csv` | `METRICS_COLUMNS`, `EVALUATIONS_COLUMNS` | training |
| `checkpoints/*/state.json` | `CheckpointFile` | `Run.save_checkpoint` |
| `workflow.json` | `WorkflowFile` | training to an order |
| `evaluation.json` | `EvaluationFile` | `runs.write_evaluation` |
| `games.json` | `GamesFile` | `runs.write_evaluation` |
| `decisions.csv`, `orders.csv`, `updates.csv` | `DecisionRow`, `OrderRow`, `UpdateRow` | a search |

Every JSON file also has the number of the format, `FORMAT`. Readers ignore fields that a model does
not name.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

FORMAT = 1
CONFIG = "config.json"
METRICS = "metrics.csv"
EVALUATIONS = "evaluations.csv"
CHECKPOINTS = "checkpoints"
WEIGHTS = "weights.safetensors"
STATE = "state.json"
WORKFLOW = "workflow.json"
EVALUATION = "evaluation.json"
GAMES = "games.json"
DECISIONS = "decisions.csv"  # only the folder of a search has one
ORDERS = "orders.csv"
UPDATES = "updates.csv"

Integer: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
Scalar: TypeAlias = str | bool | Integer | float | None
Settings: TypeAlias = dict[str, dict[str, Any]]  # by group and name, as in `train.TrainConfig`
Outcome: TypeAlias = Literal["passed", "stalled", "spent", "fixed"]

PROGRESS_COLUMNS = ("update", "episodes", "steps", "seconds")
METRICS_COLUMNS = (
    *PROGRESS_COLUMNS,
    *("return_mean", "return_std", "length_mean", "policy_loss", "value_loss", "entropy", "kl"),
    *("clip_fraction", "explained_variance", "gradient_norm", "learning_rate", "staleness"),
    *("replaced", "collect_seconds", "wait_seconds", "update_seconds", "other_seconds"),
    *("alignment_mean", "compliance", "coverage", "decisions", "fixes"),
    *("wasted_fixes", "wasted_fixes_per_episode", "shaped_return_mean"),
)
# The score is the mean over red agents and official lengths and selects the best policy; the return
# is that of whole episodes.
EVALUATIONS_COLUMNS = (
    *PROGRESS_COLUMNS,
    *("score", "standard_error", "best", "return_mean", "return_error"),
)


class ConfigFile(Struct, frozen=True, kw_only=True):
    """`config.json`: settings of a training or of a search."""

    cagepool: str = ""  # version that created the folder
    settings: dict[str, dict[str, Scalar | list[Scalar]]]


class CheckpointFile(Struct, frozen=True, kw_only=True):
    """`state.json` of a checkpoint; the state of the trainer stands beside these fields."""

    sha256: str  # of the weights
    update: Count


class TrainingState(Struct, frozen=True, kw_only=True):
    """`state.json` of the checkpoint `last`: what every trainer needs to continue."""

    update: Count
    episodes: Count
    steps: Count
    ahead: bool
    shuffle_rng: dict[str, Any]
    progress: dict[str, Any]  # see `train.runner.Progress`
    finished: bool = False


class OrderScore(Struct, frozen=True, kw_only=True):
    """Score and compliance of a greedy policy that plays to an order; rewards of the game alone."""

    mean: float
    standard_error: float
    episodes: int
    compliance: float | None  # none: no decision was made
    coverage: float | None
    decisions: float  # per episode
    wasted_fixes: float  # per episode
    passes: bool


class WorkflowFile(OrderScore, frozen=True, kw_only=True):
    """`workflow.json`: why training to an order ended, and how the policy does."""

    order: str
    outcome: Outcome
    reason: str


class Score(Struct, frozen=True):
    """Mean total reward of episodes."""

    mean: float
    standard_error: float
    episodes: int


class ScoreCell(Struct, frozen=True, kw_only=True):
    """Mean total reward of episodes of one length against one red."""

    red: str
    length: int
    mean: float
    standard_error: float
    episodes: int


class ScenarioScore(Struct, frozen=True, kw_only=True):
    """Total on one scenario."""

    name: str
    mean: float
    standard_error: float
    episodes: int  # per red


class Scores(Struct, frozen=True, kw_only=True):
    """Scores over scenarios, reds and lengths.

    Errors are over scenarios; of one scenario, over episodes.
    """

    scores: list[ScoreCell]
    total: Score  # sum of all cells; of the nine official cells, if these were played
    official: bool  # whether the total is that of the official protocol
    spread: float | None  # standard deviation of the total over scenarios; none of one
    scenarios: list[ScenarioScore]


class DefenderScores(Scores, frozen=True, kw_only=True):
    """Scores that an evaluation is compared with."""

    defender: str


class TrialScores(Scores, frozen=True, kw_only=True):
    """Settings of a trial (`evaluate.Trial`) and its scores."""

    episodes: int  # per scenario and red
    max_steps: int
    edition: str
    green: bool
    seed: int
    order: str | None
    knowledge: Literal["true", "observed"]
    definition: Literal["host", "fix-type"] = "host"


class PublishedResult(Struct, frozen=True, kw_only=True):
    """A published result on the same edition."""

    name: str
    method: str
    source: str
    how: str = ""  # short form of the source
    total: float
    cells: dict[str, dict[int, float]]  # by red, then by length


class ActionCounts(Struct, frozen=True, kw_only=True):
    """Mean number of uses per game of each kind of action on each host."""

    kinds: list[str]
    hosts: list[str]
    counts: list[list[float]]  # kind x host


class OrderCompliance(Struct, frozen=True, kw_only=True):
    """Compliance with a workflow order; none where it is undefined."""

    compliance: float | None
    coverage: float | None
    decisions: float  # per episode
    wasted_fixes: float  # per episode


class Differences(Struct, frozen=True, kw_only=True):
    """Differences of two score tables in standard errors; infinite ones are null in JSON."""

    cells: dict[str, dict[int, float | None]]  # by red, then by length
    total: float | None
    scenarios: list[float | None]


class EvaluationFile(TrialScores, frozen=True, kw_only=True):
    """`evaluation.json`: a policy on its own scenario, or on those in the name of the file."""

    name: str
    kind: Literal["scripted", "policy"]
    checkpoint: str | None  # such as best-000120
    trained_on: str | None  # edition
    trained_scenario: str | None
    env: str  # engine: native or cyborg
    scenario: str  # as asked for, without folders
    hash: str  # of the hashes of all scenarios
    published: list[PublishedResult]  # beside official scores
    loss: dict[str, dict[str, float]]  # by red, then by cause; see `evaluate.statistics.CAUSES`
    actions: dict[str, ActionCounts]  # by red
    compliance: dict[str, str | OrderCompliance] | None = None  # "order", and an entry per red
    native: DefenderScores | None = None  # beside an evaluation in CybORG
    differences: Differences | None = None  # of CybORG's scores from the native ones
    training: DefenderScores | None = None  # the same policy on scenarios of its training
    gap: float | None = None  # total minus that of `training`
    baselines: list[DefenderScores] = field(default_factory=list)


class Turn(Struct, frozen=True, kw_only=True):
    """One step of a game; `None` as success means that the action reports none."""

    step: int
    blue: str
    blue_success: bool | None
    green: str | None = None  # host that green scanned
    red: str
    red_success: bool | None
    exploit: str | None
    detected: bool | None  # none: there was nothing to detect
    reward: float


class RecordedTurn(Turn, frozen=True, kw_only=True):
    """One step of a recorded game with the state of every host after it; lists are by host."""

    blue_target: str | None
    red_target: str | None = None
    access: list[int]  # of red: 0 none, 1 user, 2 privileged
    known: list[int]  # to red: 0 nothing, 1 the address, 2 the ports
    decoys: list[list[str]]
    stopped: bool  # OTService, on any host
    stopped_hosts: list[str]
    activity: list[int]  # that blue observed: 0 none, 1 scan, 2 exploit
    belief: list[int]  # of blue: 0 not compromised, 1 unknown, 2 user, 3 privileged
    # Blue's exact belief in percent (docs/belief.md); none: not recorded, or no red agent fits.
    believed_privileged: list[int] | None = None
    believed_user: list[int] | None = None  # user-level access only
    believed_reds: dict[str, int] | None = None  # by red agent, 0 left out


class RecordedScenario(Struct, frozen=True, kw_only=True):
    """What the replay draws of the scenario of a recorded game."""

    name: str
    hash: str
    hosts: list[str]  # in the order of the lists of a turn
    zones: dict[str, list[str]]  # hosts by subnet, in the order in which they are drawn
    links: list[tuple[str, str]]  # privileged access to the first host reveals the second
    foothold: str  # host on which red starts
    targets: list[str]  # hosts that run OTService
    defender: str  # host that stands for blue, where an action has no host


class RecordedGame(Struct, frozen=True, kw_only=True):
    """A recorded game."""

    title: str
    red: str = ""
    seed: int = 0
    total: float
    scenario: RecordedScenario
    turns: list[RecordedTurn]


class GamesFile(Struct, frozen=True, kw_only=True):
    """`games.json`: games of an evaluation for the replay of the report."""

    edition: str = ""
    games: list[RecordedGame]


class DecisionRow(Struct, frozen=True, kw_only=True):
    """A row of `decisions.csv`: one training of a search, its prediction and its result."""

    iteration: int
    order: str
    why: str
    mean: float | None = None  # predicted before the training; none: no model was asked
    std: float | None = None
    pass_probability: float | None = None
    acquisition: float | None = None
    top_three: str = ""
    run: str = ""  # folder of the training
    inherits: int | None = None  # iteration whose policy it starts from
    allowance: int = 0  # episodes that the training may use
    outcome: str = ""  # empty: the training has not ended
    episodes: int | None = None
    total_episodes: int | None = None  # of the search, including this training
    reward: float | None = None
    standard_error: float | None = None
    compliance: float | None = None
    coverage: float | None = None
    decisions: float | None = None
    wasted_fixes: float | None = None
    passes: bool | None = None
    repeated: int = 0  # restarts after the death of the training's node


class OrderRow(Struct, frozen=True, kw_only=True):
    """A row of `orders.csv`: the measurement, the prediction and the class of an order."""

    order: str
    order_class: str = field(name="class")  # orders of a class are equal for the red played
    reward: float | None = None  # none: not measured
    standard_error: float | None = None
    compliance: float | None = None
    coverage: float | None = None
    passes: bool | None = None
    trainings: int | None = None
    mean: float | None = None  # predicted at the end of the search; none: no model
    std: float | None = None
    pass_probability: float | None = None
    acquisition: float | None = None


class UpdateRow(Struct, frozen=True, kw_only=True):
    """A row of `updates.csv`: one update of one of the trainings of a search."""

    workflow: int  # iteration of the search
    order: str
    total_episodes: int  # of the search
    total_reward: float | None
    update: int
    episodes: int
    environment_reward: float | None
    alignment_bonus: float | None
    compliance: float | None
    coverage: float | None
    fixes: float | None
    wasted_fixes: float | None
    collection_seconds: float | None
    update_seconds: float | None


def flat_settings(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Settings by their full names, such as `env.n_envs`."""
    return {
        f"{group}.{name}": value
        for group, values in settings.items()
        for name, value in values.items()
    }
