"""Export of a run: a folder with all that others need to play, judge and repeat a policy."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cagepool import _optional, runs
from cagepool.evaluate import protocol
from cagepool.evaluate.game_log import record_games
from cagepool.evaluate.rollout import OnProgress, Trial, ignore_progress
from cagepool.policy import Policy
from cagepool.policy.load import ZOO, load_run, zoo_folder
from cagepool.policy.policy import MLP, PolicySettings, feature_encoder
from cagepool.runs.file_access import MAX_TABLE_BYTES
from cagepool.runs.schema import EvaluationFile, Score, ScoreCell, flat_settings
from cagepool.sim.belief import BELIEF_FEATURES

CARD, ONNX, PAGE = "README.md", "policy.onnx", "report.html"
PUBLISHED_ROWS = 3  # the best published results, as in `cagepool evaluate`
TASK = {"type": "reinforcement-learning", "name": "Reinforcement Learning"}
DATASET = "cage-challenge-2"
BELIEF = """\
The last {size} features are the exact belief about red's hidden state, which cagepool's core
computes by Bayes' rule from blue's own actions and observations. The network needs them: to play it
in a program of your own, compute them with cagepool."""
LOCAL_SETTINGS = ("run.start_from",)  # paths of the machine that trained


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Settings of an export."""

    network: str | None = None
    """`module:Class` of a run with a network of its own, as for `cagepool.load`."""
    episodes: int = protocol.EPISODES
    """Games per red, if the best policy of the run has not been evaluated yet."""
    name: str | None = None
    """Name in the model card; none: that of the folder."""
    license: str | None = None
    """License in the model card, by its identifier at the hub; none: the card names none."""


@dataclass(frozen=True, kw_only=True)
class CardContent:
    """What a model card says about a policy."""

    name: str
    evaluation: EvaluationFile
    settings: Mapping[str, Mapping[str, Any]]
    policy: PolicySettings
    features: int  # inputs of the network
    choices: int  # outputs of the network
    belief_features: int  # among the features; 0: none


def export_run(
    run: str | Path,
    folder: str | Path,
    options: ExportOptions | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Path:
    """Write the best policy of a run to a folder that can be shared.

    The folder is a run folder: `cagepool.load`, `cagepool evaluate` and `CybORGAgent` take it. It
    also has an ONNX file, the report page and a model card. It appears when it is complete.

    Args:
        run: Run folder, or `zoo:NAME`.
        folder: Folder to write; it must not exist, or be empty.
        options: Settings of the export.
        on_progress: Called while games are played, if the policy has not been evaluated yet.

    Returns:
        The folder.
    """
    options = options or ExportOptions()
    source, target = _open_source(run), Path(folder)
    check_empty(target, "an export")
    policy = load_run(source.path, network=options.network)
    if not policy.settings.is_cage:
        raise ValueError(f"a policy must be one for CAGE-2, that of {run} is for another game")
    if policy.scenarios is not None:
        raise ValueError(
            f"an export must be of a policy with the inputs of CAGE-2, that of {run} has "
            "inputs host by host; the run folder itself can be shared"
        )
    with _optional.require("an export", "export", "onnx", "jinja2", "matplotlib"):
        from cagepool.policy.onnx import write_onnx  # noqa: PLC0415
        from cagepool.report import write_report  # noqa: PLC0415 - needs the libraries

    with complete_folder(target, "an export") as fresh:
        _copy_run(source, fresh)
        write_onnx(policy, fresh / ONNX)
        evaluation = _copy_evaluation(source, policy, fresh)
        if evaluation is None:
            evaluation = _evaluate(policy, fresh, options.episodes, on_progress)
        write_report([fresh], fresh / PAGE)
        card = _card_content(policy, evaluation, source, options.name or target.resolve().name)
        runs.replace_file(fresh / CARD, model_card(card, options.license).encode())
    return target


def _open_source(run: str | Path) -> runs.Run:
    if isinstance(run, str) and run.startswith(ZOO):
        run = zoo_folder(run)
    source = runs.open_run(run)
    if not source.checkpoint_updates("best"):
        raise ValueError(
            f"an export must be of a run with a best policy, {source.path} has none: train it "
            "until its first evaluation"
        )
    return source


def _copy_run(source: runs.Run, folder: Path) -> None:
    """Copy settings, learning curves and the best policy; what cannot be read is an error."""
    source.checkpoint("best")  # checks the hash of the weights
    update = source.checkpoint_updates("best")[-1]
    checkpoint = Path(runs.CHECKPOINTS, f"best-{update:06d}")
    limits = {
        Path(runs.CONFIG): runs.MAX_JSON_BYTES,
        checkpoint / runs.STATE: runs.MAX_JSON_BYTES,
        checkpoint / runs.WEIGHTS: runs.MAX_WEIGHTS_BYTES,
    }
    tables = (Path(name) for name in (runs.METRICS, runs.EVALUATIONS))
    limits |= {name: MAX_TABLE_BYTES for name in tables if os.path.lexists(source.path / name)}
    for name, limit in limits.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        runs.replace_file(folder / name, runs.read_bytes(source.path / name, limit))


def _copy_evaluation(source: runs.Run, policy: Policy, folder: Path) -> EvaluationFile | None:
    """Copy the evaluation of this policy, and its games; none: it has not been evaluated."""
    evaluation = source.evaluation()
    if evaluation is None or evaluation.checkpoint != policy.checkpoint:
        return None
    games = source.games()
    runs.write_evaluation(folder, evaluation, games, is_last=False)
    return evaluation


def _evaluate(
    policy: Policy, folder: Path, episodes: int, on_progress: OnProgress
) -> EvaluationFile:
    """Play the official protocol and write its files."""
    trial = Trial(
        episodes=episodes,
        edition=policy.edition,
        seed=protocol.SEED,
        order=policy.order,
        knowledge=policy.knowledge,
        definition=policy.definition,
    )
    result = protocol.evaluate(policy, trial, on_progress=on_progress)
    evaluation = result.to_file()
    games = record_games(trial, result.statistics)
    runs.write_evaluation(folder, evaluation, games, is_last=False)
    return evaluation


def _card_content(
    policy: Policy, evaluation: EvaluationFile, source: runs.Run, name: str
) -> CardContent:
    encoder = feature_encoder(policy.settings, 1)
    return CardContent(
        name=name,
        evaluation=evaluation,
        settings=source.settings,
        policy=policy.settings,
        features=encoder.size,
        choices=encoder.n_choices,
        belief_features=BELIEF_FEATURES if encoder.config.belief else 0,
    )


def model_card(content: CardContent, license_id: str | None = None) -> str:
    """The text of README.md: metadata for Hugging Face's hub, and a page for people."""
    metadata = _metadata(content)
    if license_id is not None:
        metadata = {"license": license_id, **metadata}
    with _optional.require("a model card", None, "yaml"):
        block = msgspec.yaml.encode(metadata).decode()
    return f"---\n{block}---\n\n{_page(content)}"


def _metadata(content: CardContent) -> dict[str, Any]:
    """Metadata of the hub; `model-index` has one result per cell, and the total."""
    evaluation = content.evaluation
    results = [
        _result(evaluation, f"{cell.red}, {cell.length} steps", f"{cell.red}-{cell.length}", cell)
        for cell in evaluation.scores
    ]
    if evaluation.official:
        results.append(_result(evaluation, "sum of the nine cells", "total", evaluation.total))
    return {
        "library_name": "cagepool",
        "pipeline_tag": TASK["type"],
        "tags": [TASK["type"], "deep-reinforcement-learning", "cyber-defense", DATASET],
        "model-index": [{"name": content.name, "results": results}],
    }


def _result(
    evaluation: EvaluationFile, cell: str, config: str, score: Score | ScoreCell
) -> dict[str, Any]:
    """One evaluation result; the hub tells results apart by the configuration of the dataset."""
    return {
        "task": TASK,
        "dataset": {
            "type": DATASET,
            "name": f"CAGE Challenge 2, edition {evaluation.edition}: {cell}",
            "config": f"{evaluation.edition}-{config}",
        },
        "metrics": [
            {
                "type": "mean_reward",
                "name": "mean total reward",
                "value": round(score.mean, 2),
                "args": {
                    "episodes": score.episodes,
                    "standard_error": round(score.standard_error, 3),
                    "seed": evaluation.seed,
                    "engine": evaluation.env,
                },
            }
        ],
    }


def _page(content: CardContent) -> str:
    sections = (
        f"# {' '.join(content.name.split())}",
        _introduction(content.policy),
        "## Scores",
        _scores(content.evaluation),
        "## Play it",
        _usage(content.policy),
        "## ONNX",
        _onnx_section(content),
        "## Files",
        FILES,
        "## Settings",
        "\n".join(_settings_table(content.settings)),
    )
    return "\n\n".join(sections) + "\n"


def _introduction(policy: PolicySettings) -> str:
    env = policy.env
    return (
        "A defender of [CAGE Challenge 2](https://github.com/cage-challenge/cage-challenge-2), "
        f"edition {env.edition}, trained with PPO by cagepool against `{env.red_agent}`."
    )


def _scores(evaluation: EvaluationFile) -> str:
    """The official table, its total, and published results of the same edition."""
    lengths = sorted({cell.length for cell in evaluation.scores})
    cells = {(cell.red, cell.length): cell for cell in evaluation.scores}
    rows = [
        ["red agent", *(f"{length} steps" for length in lengths)],
        ["---"] + ["---:"] * len(lengths),
    ]
    rows += [
        [red, *(_format_score(cells[red, length]) for length in lengths)]
        for red in dict.fromkeys(cell.red for cell in evaluation.scores)
    ]
    total = evaluation.total
    lines = [
        f"Mean total reward ± standard error of {evaluation.episodes} games per red agent by the",
        f"official protocol: {evaluation.env} games of seed {evaluation.seed}, played greedily. No",
        "game was part of the training.",
        "",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        f"Total of the {len(evaluation.scores)} cells: **{_format_score(total)}**",
        *(
            f"- {result.name}: {result.total:.2f} ({result.how})"
            for result in evaluation.published[:PUBLISHED_ROWS]
        ),
        "",
        "Scores of different editions must not be compared.",
    ]
    return "\n".join(lines)


def _format_score(score: Score | ScoreCell) -> str:
    return f"{score.mean:.2f} ± {score.standard_error:.2f}"


def _usage(policy: PolicySettings) -> str:
    own = "" if ":" not in policy.ppo.network else f', network="{policy.ppo.network}"'
    return f"""\
```python
import cagepool

policy = cagepool.load("."{own})  # this folder
envs = cagepool.make_vec(100, red="mix", edition="{policy.env.edition}")
observations, infos = envs.reset(seed=0)
for _ in range(100):
    actions = policy.act(observations)
    observations, rewards, terminations, truncations, infos = envs.step(actions)
print(infos["episode"]["r"].mean(), "mean return per episode")
```

Before the next episodes, call `policy.begin(100)`. `cagepool evaluate .` plays the official
protocol again. `cagepool.integrations.CybORGAgent("."{own})` plays inside CybORG, behind its
ChallengeWrapper."""


def _onnx_section(content: CardContent) -> str:
    inputs = f"`features` (games, {content.features}), float32"
    if content.policy.features.action_masking:
        inputs += f", and `action_masks` (games, {content.choices}), bool"
    lines = [
        f"`policy.onnx` takes {inputs}.",
        "It returns `actions` (games,), the numbers of blue's 145 actions, and `logits`.",
        "`cagepool.policy.policy.feature_encoder` makes features and masks of observations.",
    ]
    if content.policy.ppo.network != MLP:
        lines.append("A network with a memory also takes `state` and returns `next_state`.")
    if content.belief_features:
        lines += ["", BELIEF.format(size=content.belief_features)]
    return "\n".join(lines)


FILES = """\
| file | content |
|---|---|
| `config.json` | settings of the training |
| `checkpoints/` | weights (safetensors), and the update that they are from |
| `policy.onnx` | the network with its choice of an action |
| `evaluation.json` | scores, losses by cause, use of actions |
| `metrics.csv`, `evaluations.csv` | learning curve: rows per update and per evaluation |
| `report.html` | all of this as a page |"""


def _settings_table(settings: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "| setting | value |"
    yield "|---|---|"
    for name, value in flat_settings(settings).items():
        if value is not None and name not in LOCAL_SETTINGS:
            yield f"| {name} | {_code(value)} |"


def _code(value: Any) -> str:
    """A value as code in a cell of a table, whatever characters it has."""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return "`" + " ".join(text.split()).replace("`", "'").replace("|", "\\|") + "`"


def check_empty(folder: Path, what: str) -> None:
    """Raise ValueError unless a folder does not exist or is empty; `what` is to be written."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise ValueError(f"{what} must be written to a folder, {folder} is a file")
    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(f"{what} needs an empty folder, {folder} is not empty")


@contextmanager
def complete_folder(target: Path, what: str) -> Iterator[Path]:
    """A folder of the same name beside the target, which replaces the target if all goes well."""
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        parent = tempfile.mkdtemp(prefix=".unfinished-", dir=target.absolute().parent)
    except OSError as error:
        raise ValueError(
            f"the folder of {what} must be writable, {target} is not: {error}"
        ) from error
    try:
        fresh = Path(parent, target.resolve().name)
        fresh.mkdir()
        yield fresh
        fresh.replace(target)
    finally:
        shutil.rmtree(parent, ignore_errors=True)
