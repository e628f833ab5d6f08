"""Evaluation of a policy on other networks, beside scripted defenders and its training networks."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from cagepool.evaluate.defenders import Defender, scripted_defender
from cagepool.evaluate.network_scores import (
    BASELINES,
    TRAINING_NETWORKS,
    NetworkScores,
    network_scores,
    playable_reds,
    spread_evenly,
)
from cagepool.evaluate.policy import PolicyDefender
from cagepool.evaluate.policy_function import FunctionDefender
from cagepool.evaluate.resolve import ResolvedPolicy
from cagepool.evaluate.rollout import (
    Engine,
    NativeEngine,
    OnProgress,
    Trial,
    ignore_progress,
    load_scenarios,
)
from cagepool.runs.schema import ScenarioEvaluationFile
from cagepool.scenarios import CAGE2, Scenario

NATIVE_EPISODES = 200  # per network and red, beside games of CybORG


@dataclass(frozen=True)
class NetworkEvaluation:
    """Scores of a policy on networks, and what they are compared with."""

    policy: ResolvedPolicy
    scenario: str  # as it was asked for
    trial: Trial
    engine: str
    scores: NetworkScores
    training: NetworkScores | None
    native: NetworkScores | None
    baselines: list[NetworkScores]

    @property
    def label(self) -> str:
        """Names of the scenarios, without the folders of their files."""
        names = (name.strip() for name in self.scenario.split(","))
        return ",".join(Path(name).stem if Path(name).exists() else name for name in names)

    @property
    def reds(self) -> tuple[str, ...]:
        """Red agents that can play all networks."""
        return tuple(self.scores.games)

    @property
    def gap(self) -> float | None:
        """Mean score minus that on networks of the training."""
        return None if self.training is None else self.scores.mean - self.training.mean

    def to_file(self) -> ScenarioEvaluationFile:
        """The content of the file in the run folder."""
        hashes = "\n".join(one.hash for one in self.trial.scenarios)
        differences = None if self.native is None else self.scores.differences(self.native)
        return ScenarioEvaluationFile(
            scenario=self.label,
            hash=hashlib.sha256(hashes.encode()).hexdigest(),
            checkpoint=self.policy.checkpoint,
            trained_scenario=self.policy.scenario,
            trained_on=self.policy.trained_on,
            env=self.engine,
            episodes=self.trial.episodes,
            max_steps=self.trial.max_steps,
            edition=self.trial.edition,
            seed=self.trial.seed,
            scores=self.scores.to_record(),
            training=None if self.training is None else self.training.to_record(),
            gap=self.gap,
            native=None if self.native is None else self.native.to_record(),
            differences=None if differences is None else differences.tolist(),
            baselines=[baseline.to_record() for baseline in self.baselines],
        )


def evaluate_networks(
    blue: ResolvedPolicy,
    scenario: str,
    trial: Trial,
    engine: Engine | None = None,
    on_progress: OnProgress = ignore_progress,
) -> NetworkEvaluation:
    """Play a policy on networks, and what it is compared with on the same games.

    Natively, these are the scripted defenders, and the policy on networks of its training; for
    CybORG, native games.

    Args:
        blue: The defender.
        scenario: Files, folders and suites, joined by commas.
        trial: Settings of the games, per network and red.
        engine: Where the games are played; by default natively.
        on_progress: Called while games are played.

    Raises:
        ValueError: a network does not exist, or the defender cannot play one of them.
    """
    engine = engine or NativeEngine()
    _check_defender(blue)
    scenarios = load_scenarios(scenario)
    is_native = isinstance(engine, NativeEngine)
    trained = _training_networks(blue) if is_native else ()
    reds = playable_reds((*scenarios, *trained))
    defender = blue.defender
    layout = defender.policy.layout if isinstance(defender, PolicyDefender) else None
    trial = replace(trial, scenarios=scenarios, layout=layout)

    def play(name: str, player: Defender, played: Trial, where: Engine) -> NetworkScores:
        return network_scores(name, player, played, reds, engine=where, on_progress=on_progress)

    scores = play(blue.name, defender, trial, engine)
    training = native = None
    if trained:
        training = play(blue.name, defender, replace(trial, scenarios=trained), engine)
    if not is_native:
        more = replace(trial, episodes=max(trial.episodes, NATIVE_EPISODES))
        native = play(blue.name, defender, more, NativeEngine())
    names = [name for name in BASELINES if name != blue.name] if is_native else []
    baselines = [play(name, scripted_defender(name), trial, engine) for name in names]
    return NetworkEvaluation(
        blue, scenario, trial, engine.name, scores, training, native, baselines
    )


def _check_defender(blue: ResolvedPolicy) -> None:
    """Raise ValueError for models whose inputs are those of the built-in network."""
    known = (PolicyDefender, FunctionDefender)
    if blue.kind == "policy" and not isinstance(blue.defender, known):
        raise ValueError(
            f"other networks need a run folder, a function or a scripted defender, got {blue.name}"
        )


def _training_networks(blue: ResolvedPolicy) -> tuple[Scenario, ...]:
    """Networks of a policy's training, or some of them; none if they are not found."""
    if blue.kind != "policy" or blue.run is None:
        return ()
    if blue.scenario is None:
        return (CAGE2,)
    try:
        return spread_evenly(load_scenarios(blue.scenario), TRAINING_NETWORKS)
    except ValueError:  # files of the training that are no longer there
        return ()
