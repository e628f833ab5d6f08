"""Reward breakdown: loss by cause (docs/rules.md, section 9)."""

from cagepool.sim.rewards import RESTORES, REWARD_PARTS, part_tenths
from cagepool.types import Int64s

CAUSES = REWARD_PARTS


def loss_by_cause(
    privileged_steps: Int64s, outage_steps: int, action_uses: Int64s
) -> dict[str, int]:
    """Loss by cause, in tenths; the sum is exactly the loss of the games.

    Args:
        privileged_steps: Steps in which red was privileged on each host, (HOST_COUNT,).
        outage_steps: Steps in which OTService did not run.
        action_uses: Uses of each action, (ACTION_COUNT,).
    """
    tenths = part_tenths(privileged_steps, outage_steps, action_uses[RESTORES].sum())
    return dict(zip(CAUSES, (-tenths).tolist(), strict=True))
