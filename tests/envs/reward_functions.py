"""Reward functions of the tests, by name and in worker processes."""

from typing import Any

import numpy as np

from cagepool.envs import RewardStep

NOT_A_FUNCTION = 3


def official(step: RewardStep) -> Any:
    return step.reward


def twice(step: RewardStep) -> Any:
    return 2 * step.reward


def impact_only(step: RewardStep) -> Any:
    return step.parts["impact"]


def mixed(step: RewardStep) -> Any:
    """Uses every part of a step."""
    potential = step.true_state.access.sum(axis=1) * 0.5
    potential_before = step.true_state_before.access.sum(axis=1) * 0.5
    restores = (step.moves.blue == "Restore") & (step.moves.blue_success == 1)
    impacts = (step.moves.red == "Impact") & (step.moves.red_success == 1)
    return step.reward + potential_before - potential - restores - 7.0 * impacts + step.ended


def raising(step: RewardStep) -> Any:
    parts: dict[int, Any] = {}
    return parts[len(step)]


def too_short(step: RewardStep) -> Any:
    return step.reward[:-1]


def scalar(step: RewardStep) -> Any:
    return float(step.reward.sum())


def words(step: RewardStep) -> Any:
    return ["good"] * len(step)


def nothing(step: RewardStep) -> Any:
    del step


def not_a_number(step: RewardStep) -> Any:
    return np.full(len(step), np.nan)


def ragged(step: RewardStep) -> Any:
    return [[1.0], *[[1.0, 2.0]] * (len(step) - 1)]


def writing(step: RewardStep) -> Any:
    step.reward[:] = 0
    return step.reward
