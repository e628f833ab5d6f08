"""Evaluate a policy over scenarios, reds and lengths; in CAGE-2 by the official protocol.

The official protocol has nine cells: 30, 50 and 100 steps against three reds. A policy plays
greedily and does not know the length of a game, as in CybORG's own evaluation, so the lengths are
read off the same games.

No game of an evaluation is a game of the training: an evaluation draws 64-bit seeds from the seed
of the trial, the red and the scenario, a training draws 32-bit seeds. The periodic evaluations that
choose the best policy during training draw their seeds from another seed.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cagepool.evaluate.baselines import PUBLISHED
from cagepool.evaluate.rollout import (
    Engine,
    NativeEngine,
    OnProgress,
    Trial,
    ignore_progress,
    load_scenarios,
    spread_evenly,
)
from cagepool.evaluate.statistics import (
    GameStatistics,
    ScoreTable,
    play_and_count,
    score_differences,
)
from cagepool.policy.defenders import Defender, scripted_defender
from cagepool.runs.schema import EvaluationFile, OrderCompliance
from cagepool.scenarios import CAGE2, Scenario
from cagepool.sim.names import OFFICIAL_REDS, RED_ALIASES

SEED = 153  # of the leaderboard
EPISODES = 1000  # of the leaderboard, per cell
EPISODES_PER_SCENARIO = 20  # and red, of several scenarios
NATIVE_EPISODES = 200  # the same, beside games of CybORG
BASELINES = ("react-restore", "react-remove", "sleep")
"""Scripted defenders beside a policy where there are no published scores."""
TRAINING_SCENARIOS = 100
"""Scenarios of a training that are played, evenly spread over all of them."""


@dataclass(frozen=True)
class Evaluation:
    """Scores and statistics of a policy, and the scores that they are compared with."""

    policy: Defender
    engine: str  # name of the engine
    scenario: str  # as asked for, without folders
    table: ScoreTable
    statistics: dict[str, GameStatistics]  # by red
    native: ScoreTable | None = None  # native games beside those of CybORG
    training: ScoreTable | None = None  # the same policy on scenarios of its training
    baselines: dict[str, ScoreTable] = field(default_factory=dict)  # by name

    @property
    def trial(self) -> Trial:
        """Settings of the games."""
        return self.table.trial

    @property
    def gap(self) -> float | None:
        """Total minus the total on scenarios of the training."""
        return None if self.training is None else self.table.total.mean - self.training.total.mean

    def to_file(self) -> EvaluationFile:
        """The content of `evaluation.json`, which `runs.write_evaluation` writes."""
        scores = self.table.to_record()
        hashes = "\n".join(scenario.hash for scenario in self.trial.scenarios)
        name = self.policy.name
        return EvaluationFile(
            **{name: getattr(scores, name) for name in scores.__struct_fields__},
            name=name,
            kind=self.policy.kind,
            checkpoint=self.policy.checkpoint,
            trained_on=self.policy.trained_on,
            trained_scenario=trained_scenario(self.policy),
            env=self.engine,
            scenario=self.scenario,
            hash=hashlib.sha256(hashes.encode()).hexdigest(),
            published=list(PUBLISHED[self.trial.edition]) if scores.official else [],
            loss={red: games.mean_loss() for red, games in self.statistics.items()},
            actions={red: games.mean_action_uses() for red, games in self.statistics.items()},
            compliance=self._compliance(),
            native=None if self.native is None else self.native.to_reference(name),
            differences=None if self.native is None else score_differences(self.table, self.native),
            training=None if self.training is None else self.training.to_reference(name),
            gap=self.gap,
            baselines=[table.to_reference(name) for name, table in self.baselines.items()],
        )

    def _compliance(self) -> dict[str, str | OrderCompliance] | None:
        if self.trial.order is None:
            return None
        by_red = {red: games.compliance() for red, games in self.statistics.items()}
        measured = {red: result for red, result in by_red.items() if result is not None}
        return {"order": self.trial.order, **measured}


def evaluate(  # noqa: PLR0913 - what to play, where, and what beside it
    policy: Defender,
    trial: Trial,
    engine: Engine | None = None,
    on_progress: OnProgress = ignore_progress,
    *,
    label: str | None = None,
    references: bool = False,
) -> Evaluation:
    """Play a trial against the official reds that can play its scenarios.

    Args:
        policy: The defender.
        trial: Settings of the games.
        engine: By default the native one.
        on_progress: Called while games are played.
        label: Name of the scenarios in the result.
        references: Whether to play what the scores are compared with: native games beside those of
            CybORG; outside of the official protocol also scripted defenders, and the policy on
            scenarios of its training.

    Raises:
        CybORGNotFoundError: the engine is CybORG, which is not installed.
        ValueError: CybORG has another edition than the trial, or the policy cannot play a scenario.
    """
    engine = engine or NativeEngine()
    is_native = engine.name == NativeEngine.name
    trial = _fitted(trial, policy, is_native=is_native)
    trained = _training_scenarios(policy, trial) if references and is_native else ()
    reds = playable_reds((*trial.scenarios, *trained))
    statistics = {red: play_and_count(policy, trial, red, engine, on_progress) for red in reds}
    table = ScoreTable(trial, {red: games.totals for red, games in statistics.items()})
    result = Evaluation(policy, engine.name, label or _label(trial), table, statistics)
    if not references:
        return result

    def play(player: Defender, played: Trial) -> ScoreTable:
        return score_table(player, played, reds, on_progress)

    if not is_native:
        few = EPISODES if len(trial.scenarios) == 1 else NATIVE_EPISODES
        more = replace(trial, episodes=max(trial.episodes, few))
        return replace(result, native=play(policy, more))
    if trained:
        result = replace(result, training=play(policy, replace(trial, scenario=trained)))
    names = [name for name in BASELINES if name != policy.name and not table.is_official]
    plain = replace(trial, order=None)
    return replace(result, baselines={name: play(scripted_defender(name), plain) for name in names})


def score_table(
    defender: Defender,
    trial: Trial,
    red_agents: Iterable[str] = OFFICIAL_REDS,
    on_progress: OnProgress = ignore_progress,
) -> ScoreTable:
    """Play a trial natively against some reds, by class name or alias, and return its scores.

    Raises:
        ValueError: a red is unknown, or there is none.
    """
    totals = {
        red: play_and_count(defender, trial, red, on_progress=on_progress).totals
        for red in official_red_names(red_agents)
    }
    return ScoreTable(trial, totals)


def official_red_names(red_agents: Iterable[str]) -> tuple[str, ...]:
    """Class names of official red agents, without duplicates."""
    names = tuple(dict.fromkeys(RED_ALIASES.get(red, red) for red in red_agents))
    unknown = [name for name in names if name not in OFFICIAL_REDS]
    if unknown or not names:
        known = f"one or more of {', '.join(OFFICIAL_REDS)} (or {', '.join(RED_ALIASES)})"
        raise ValueError(f"red must be {known}; got {', '.join(map(repr, unknown)) or 'none'}")
    return names


def playable_reds(scenarios: Sequence[Scenario]) -> tuple[str, ...]:
    """Official reds that can play all of these scenarios."""
    return tuple(
        red
        for red in OFFICIAL_REDS
        if all(scenario.red_refusal(red) is None for scenario in scenarios)
    )


def scenario_label(names: str) -> str:
    """Names of scenarios, joined by commas, without the folders of their files."""
    paths = [(name.strip(), Path(name.strip())) for name in names.split(",")]
    is_file = [path.suffix in (".yaml", ".yml") or path.exists() for _, path in paths]
    return ",".join(
        path.stem if found or path.is_absolute() else name
        for (name, path), found in zip(paths, is_file, strict=True)
    )


def trained_scenario(policy: Defender) -> str | None:
    """Label of the scenarios of a policy's training; none: it was not trained here."""
    if policy.trained_on is None:
        return None
    return CAGE2.name if policy.scenario is None else scenario_label(policy.scenario)


def _label(trial: Trial) -> str:
    first, *others = trial.scenarios
    return f"{1 + len(others)} scenarios" if others else first.name


def _fitted(trial: Trial, policy: Defender, *, is_native: bool) -> Trial:
    """A trial in the layout of the policy, and without an order where CybORG has none."""
    trial = replace(trial, layout=policy.layout or trial.layout)
    has_order = is_native or trial.scenarios == (CAGE2,)
    return trial if has_order else replace(trial, order=None)


def _training_scenarios(policy: Defender, trial: Trial) -> tuple[Scenario, ...]:
    """Scenarios of a policy's training, or some; none if they are played anyway or not found."""
    if policy.kind != "policy" or policy.run is None:
        return ()
    try:
        trained = (CAGE2,) if policy.scenario is None else load_scenarios(policy.scenario)
    except ValueError:  # files of the training that are no longer there
        return ()
    trained = spread_evenly(trained, TRAINING_SCENARIOS)
    return () if trained == trial.scenarios else trained
