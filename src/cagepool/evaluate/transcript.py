"""One game, turn by turn, in words."""

from dataclasses import dataclass

from cagepool.evaluate.defenders import Defender
from cagepool.evaluate.rollout import Trial, game_seeds, opened, played
from cagepool.sim import Batch
from cagepool.sim.names import EXPLOITS, HOSTS, action_name, red_move_name

SUCCESS = {1: True, 0: False, -1: None}


@dataclass(frozen=True)
class Turn:
    """What happened in one step."""

    step: int
    blue: str
    blue_success: bool | None  # none: an action that cannot tell, such as Sleep
    green: str | None  # the host that was scanned
    red: str
    red_success: bool | None
    exploit: str | None
    detected: bool | None  # none: nothing to detect
    observation: dict[str, str]  # host: bits of activity and of compromise, where any is set
    reward: float


def transcript(defender: Defender, trial: Trial, red: str) -> list[Turn]:
    """The first of the trial's games against one red."""
    batch = opened(trial, red, game_seeds(trial, red)[:1])
    return [turn_of(batch, step - 1) for step, _ in played(defender, trial, batch)]


def turn_of(batch: Batch, step: int) -> Turn:
    """The last step of a batch of one game, which was its step of this number."""
    moves = batch.moves[0]
    return Turn(
        step=step,
        blue=action_name(moves["blue_action"]),
        blue_success=SUCCESS[int(moves["blue_success"])],
        green=_named(HOSTS, moves["green_host"]),
        red=red_move_name(moves["red_kind"], moves["red_target"]),
        red_success=SUCCESS[int(moves["red_success"])],
        exploit=_named(EXPLOITS, moves["exploit"]),
        detected=SUCCESS[int(moves["detected"])],
        observation=_shown(batch),
        reward=float(batch.rewards[0]),
    )


def _named(names: tuple[str, ...], index: int) -> str | None:
    return None if index < 0 else names[index]


def _shown(batch: Batch) -> dict[str, str]:
    groups = batch.observations[0].astype(int).reshape(len(HOSTS), -1)
    return {
        host: "{}{} {}{}".format(*bits)
        for host, bits in zip(HOSTS, groups, strict=True)
        if bits.any()
    }
