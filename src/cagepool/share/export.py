"""Export of a run: a folder with all that others need to play, judge and repeat a policy."""

import os
from dataclasses import dataclass
from pathlib import Path

from cagepool import _optional, runs
from cagepool.evaluate import protocol, zoo
from cagepool.evaluate.game_log import record_games
from cagepool.evaluate.load import load
from cagepool.evaluate.policy import Policy, PolicyDefender, feature_encoder
from cagepool.evaluate.resolve import ResolvedPolicy, resolve_policy
from cagepool.evaluate.rollout import OnProgress, Trial, ignore_progress
from cagepool.runs.file_access import MAX_TABLE_BYTES
from cagepool.runs.schema import EvaluationFile
from cagepool.share.model_card import CardContent, model_card
from cagepool.share.new_folder import check_empty, complete_folder
from cagepool.sim.belief import BELIEF_FEATURES

CARD, ONNX, PAGE = "README.md", "policy.onnx", "report.html"


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

    Raises:
        ValueError: the run is damaged or has no best policy, the policy is not for CAGE-2, its
            network cannot be exported, or the folder is not empty or not writable.
        ImportError: a library of the extra `export` is not installed.
    """
    options = options or ExportOptions()
    source, target = _open_source(run), Path(folder)
    check_empty(target, "an export")
    resolved = resolve_policy(str(source.path.absolute()), network=options.network)
    if isinstance(resolved.defender, PolicyDefender) and resolved.defender.policy.networks:
        raise ValueError(
            f"an export must be of a policy with the inputs of CAGE-2's network, that of {run} has "
            "inputs host by host; the run folder itself can be shared"
        )
    with _optional.require("an export", "export", "onnx", "jinja2", "matplotlib"):
        from cagepool.report import write_report  # noqa: PLC0415 - needs the libraries
        from cagepool.share.onnx_export import write_onnx  # noqa: PLC0415

    with complete_folder(target, "an export") as fresh:
        _copy_run(source, fresh)
        policy = load(fresh, network=options.network)
        write_onnx(policy, fresh / ONNX)
        evaluation = _copy_evaluation(source, resolved, fresh)
        if evaluation is None:
            evaluation = _evaluate(resolved, fresh, options.episodes, on_progress)
        write_report([fresh], fresh / PAGE)
        card = _card_content(policy, evaluation, source, options.name or target.resolve().name)
        runs.replace_file(fresh / CARD, model_card(card, options.license).encode())
    return target


def _open_source(run: str | Path) -> runs.Run:
    if isinstance(run, str) and run.startswith(zoo.PREFIX):
        run = zoo.zoo_folder(run)
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
    tables = (Path(name) for name in (runs.METRICS, runs.CHECKS))
    limits |= {name: MAX_TABLE_BYTES for name in tables if os.path.lexists(source.path / name)}
    for name, limit in limits.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        runs.replace_file(folder / name, runs.read_bytes(source.path / name, limit))


def _copy_evaluation(
    source: runs.Run, resolved: ResolvedPolicy, folder: Path
) -> EvaluationFile | None:
    """Copy the evaluation of this policy, and its games; none: it has not been evaluated."""
    evaluation = source.evaluation()
    if evaluation is None or evaluation.checkpoint != resolved.checkpoint:
        return None
    games = source.games()
    runs.write_evaluation(folder, evaluation, games, is_last=False)
    return evaluation


def _evaluate(
    resolved: ResolvedPolicy, folder: Path, episodes: int, on_progress: OnProgress
) -> EvaluationFile:
    """Play the official protocol and write its files."""
    trial = Trial(
        episodes=episodes,
        edition=resolved.edition(),
        seed=protocol.SEED,
        order=resolved.order,
        knowledge=resolved.knowledge,
        definition=resolved.definition,
    )
    result = protocol.evaluate(resolved, trial, on_progress=on_progress)
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
