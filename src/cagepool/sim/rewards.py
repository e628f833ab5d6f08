"""The official reward (docs/rules.md and docs/scenarios.md, section 9), split into parts."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.scenarios import Layout, Scenario
from cagepool.sim.masks import ScenarioIds, action_table, slot_tables
from cagepool.types import Int64s

REWARD_PARTS = ("user_hosts", "servers", "impact", "restores", "other")
"""Parts of a reward: red's privileged access to hosts of the role `user` or named User..., to hosts
of the roles `enterprise` and `op_server`, outages of OTService, blue's Restores, and red's
privileged access to other hosts."""

_IMPACT = REWARD_PARTS.index("impact")
_RESTORES = REWARD_PARTS.index("restores")


class RewardTables:
    """Weights of the reward in several scenarios."""

    def __init__(self, scenarios: Sequence[Scenario], layout: Layout) -> None:
        """Read the weights; `reward_tables` caches them."""
        shape = len(scenarios), max(len(scenario.hosts) for scenario in scenarios)
        self._host_tenths: Int64s = np.zeros((*shape, len(REWARD_PARTS)), np.int64)
        self._outage_tenths: Int64s = np.zeros(shape, np.int64)  # 0 where no service runs
        for index, scenario in enumerate(scenarios):
            for host, tenths in enumerate(scenario.confidentiality_tenths):
                part = REWARD_PARTS.index(_part_of_host(scenario, host))
                self._host_tenths[index, host, part] = -tenths
                self._outage_tenths[index, host] = (
                    -scenario.ot[host] * scenario.availability_tenths[host]
                )
        table = action_table(layout)
        is_restore = np.array([kind == "Restore" for kind in layout.kinds])[table.kinds]
        has_host = slot_tables(tuple(scenarios), layout).mask[:, table.slots]
        has_kind = np.array(["Restore" in scenario.action_kinds for scenario in scenarios])
        self._is_restore = is_restore & has_host & has_kind[:, None]  # (scenarios, actions)

    def step_part_tenths(
        self, true_state: NDArray[np.void], moves: NDArray[np.void], scenario_ids: ScenarioIds
    ) -> Int64s:
        """Rewards of one step in tenths, (games, 5), by part; their sum is the official reward.

        Args:
            true_state: The true states after the step, before an autoreset.
            moves: The moves of the step.
            scenario_ids: Scenario of each game, (games,).
        """
        hosts = self._outage_tenths.shape[1]
        privileged = (true_state["privileged"][:, :hosts] != 0).astype(np.int64)
        is_stopped = (true_state["ot_running"][:, :hosts] == 0).astype(np.int64)
        restores = self._is_restore[scenario_ids, moves["blue_action"]]
        if len(self._host_tenths) == 1:
            tenths: Int64s = privileged @ self._host_tenths[0]
            tenths[:, _IMPACT] = is_stopped @ self._outage_tenths[0]
        else:
            tenths = np.einsum("gh,ghp->gp", privileged, self._host_tenths[scenario_ids])
            tenths[:, _IMPACT] = (is_stopped * self._outage_tenths[scenario_ids]).sum(axis=1)
        tenths[:, _RESTORES] = -_core.RESTORE_TENTHS * restores
        return tenths


def _part_of_host(scenario: Scenario, host: int) -> str:
    role = scenario.roles[host]
    if role in ("enterprise", "op_server"):
        return "servers"
    is_user = role == "user" or scenario.hosts[host].startswith("User")
    return "user_hosts" if is_user else "other"


@lru_cache(maxsize=16)
def reward_tables(scenarios: tuple[Scenario, ...], layout: Layout) -> RewardTables:
    """The weights of these scenarios."""
    return RewardTables(scenarios, layout)
