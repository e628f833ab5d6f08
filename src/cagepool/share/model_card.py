"""Model card of an exported policy: README.md in the form that Hugging Face's hub reads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from cagepool import _optional
from cagepool.evaluate.policy import MLP, PolicySettings
from cagepool.runs.schema import EvaluationFile, Score, ScoreCell, flat_settings

PUBLISHED_ROWS = 3  # the best published results, as in `cagepool evaluate`
TASK = {"type": "reinforcement-learning", "name": "Reinforcement Learning"}
DATASET = "cage-challenge-2"
BELIEF = """\
The last {size} features are the exact belief about red's hidden state, which cagepool's core
computes by Bayes' rule from blue's own actions and observations. The network needs them: to play it
in a program of your own, compute them with cagepool."""
LOCAL_SETTINGS = ("run.start_from",)  # paths of the machine that trained


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


def model_card(content: CardContent, license_id: str | None = None) -> str:
    """The text of README.md: a metadata block with the scores, and a page for people.

    Args:
        content: What the card says.
        license_id: Identifier of a license at the hub, such as `mit`; none: the card names none.
    """
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
    if evaluation.total is not None:
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
        f"Total of the nine cells: **{_format_score(total)}**" if total else "",
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
protocol again. `cagepool.cyborg.CybORGAgent("."{own})` plays inside CybORG, behind its
ChallengeWrapper."""


def _onnx_section(content: CardContent) -> str:
    inputs = f"`features` (games, {content.features}), float32"
    if content.policy.features.action_masking:
        inputs += f", and `action_masks` (games, {content.choices}), bool"
    lines = [
        f"`policy.onnx` takes {inputs}.",
        "It returns `actions` (games,), the numbers of blue's 145 actions, and `logits`.",
        "`cagepool.evaluate.policy.feature_encoder` makes features and masks of observations.",
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
| `metrics.csv`, `checks.csv` | learning curve: rows per update, and per evaluation in training |
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
