"""The official reward (docs/rules.md, section 9), split into parts with the weights of the core."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cagepool import _core
from cagepool.scenarios import Layout, Scenario
from cagepool.sim.names import HOSTS, action_index
from cagepool.sim.slots import ScenarioIds, action_table, slot_tables
from cagepool.types import Int64s

REWARD_PARTS = ("user_hosts", "servers", "impact", "restores", "other")
"""Parts of a reward: red's privileged access to User1 to User4, to the servers of the enterprise
and Op_Server0, the outage of OTService, blue's Restores, and red's privileged access elsewhere. In
other networks: access to hosts of the role `user` or named User..., of the roles `enterprise` and
`op_server`, and to others."""

RESTORES = [action_index(f"Restore {host}") for host in HOSTS]
_IMPACT = REWARD_PARTS.index("impact")
_RESTORES = REWARD_PARTS.index("restores")
_SERVERS = ("Enterprise0", "Enterprise1", "Enterprise2", "Op_Server0")


def _part_of_host(host: str) -> str:
    if host in _SERVERS:
        return "servers"
    return "user_hosts" if host.startswith("User") else "other"


_HOST_TENTHS: Int64s = np.zeros((_core.HOST_COUNT, len(REWARD_PARTS)), np.int64)
for _host, (_name, _loss) in enumerate(zip(HOSTS, _core.host_loss_tenths(), strict=True)):
    _HOST_TENTHS[_host, REWARD_PARTS.index(_part_of_host(_name))] = -_loss

_RESTORE_FLAGS: Int64s = np.zeros(_core.ACTION_COUNT, np.int64)
_RESTORE_FLAGS[RESTORES] = 1


def part_tenths(privileged: ArrayLike, outages: ArrayLike, restores: ArrayLike) -> Int64s:
    """Rewards in tenths, (…, 5), by part; their sum is exactly the official reward.

    The arguments are counts of steps, or flags of a single step.

    Args:
        privileged: Steps in which red was privileged on each host, (…, HOST_COUNT).
        outages: Steps in which OTService did not run, (…).
        restores: Uses of Restore, (…).
    """
    tenths: Int64s = np.asarray(privileged, np.int64) @ _HOST_TENTHS
    tenths[..., _IMPACT] = -_core.OUTAGE_TENTHS * np.asarray(outages, np.int64)
    tenths[..., _RESTORES] = -_core.RESTORE_TENTHS * np.asarray(restores, np.int64)
    return tenths


def step_part_tenths(
    true_state: NDArray[np.void],
    moves: NDArray[np.void],
    tables: "RewardTables | None" = None,
    scenario_ids: ScenarioIds | None = None,
) -> Int64s:
    """Rewards of one step in tenths, (games, 5), by part.

    Args:
        true_state: The true states after the step, before an autoreset.
        moves: The moves of the step.
        tables: Weights of the games' networks; None: the games are those of the built-in one.
        scenario_ids: Index of each game's network in the tables, (games,).
    """
    if tables is not None and scenario_ids is not None:
        return tables.step_part_tenths(true_state, moves, scenario_ids)
    return part_tenths(
        true_state["privileged"] != 0,
        true_state["ot_running"] == 0,
        _RESTORE_FLAGS[moves["blue_action"]],
    )


class RewardTables:
    """Weights of the reward in several networks (docs/scenarios.md, section 9)."""

    def __init__(self, scenarios: Sequence[Scenario], layout: Layout) -> None:
        """Read the weights; `reward_tables` caches them."""
        shape = len(scenarios), max(len(scenario.hosts) for scenario in scenarios)
        self._host_tenths: Int64s = np.zeros((*shape, len(REWARD_PARTS)), np.int64)
        self._outage_tenths: Int64s = np.zeros(shape, np.int64)  # 0 where no service runs
        for index, scenario in enumerate(scenarios):
            for host, tenths in enumerate(scenario.confidentiality_tenths):
                part = REWARD_PARTS.index(_part_of_role(scenario, host))
                self._host_tenths[index, host, part] = -tenths
                self._outage_tenths[index, host] = (
                    scenario.ot[host] * scenario.availability_tenths[host]
                )
        table = action_table(layout)
        is_restore = np.array([kind == "Restore" for kind in layout.kinds])[table.kinds]
        has_host = slot_tables(tuple(scenarios), layout).mask[:, table.slots]
        has_kind = np.array(["Restore" in scenario.action_kinds for scenario in scenarios])
        self._is_restore = is_restore & has_host & has_kind[:, None]  # (scenarios, actions)

    def step_part_tenths(
        self, true_state: NDArray[np.void], moves: NDArray[np.void], scenario_ids: ScenarioIds
    ) -> Int64s:
        """See the function of the same name."""
        hosts = self._outage_tenths.shape[1]
        privileged = true_state["privileged"][:, :hosts] != 0
        weights = self._host_tenths[scenario_ids]
        tenths: Int64s = np.einsum("gh,ghp->gp", privileged.astype(np.int64), weights)
        is_stopped = true_state["ot_running"][:, :hosts] == 0
        tenths[:, _IMPACT] = -(is_stopped * self._outage_tenths[scenario_ids]).sum(axis=1)
        restores = self._is_restore[scenario_ids, moves["blue_action"]]
        tenths[:, _RESTORES] = -_core.RESTORE_TENTHS * restores
        return tenths


def _part_of_role(scenario: Scenario, host: int) -> str:
    role = scenario.roles[host]
    if role in ("enterprise", "op_server"):
        return "servers"
    is_user = role == "user" or scenario.hosts[host].startswith("User")
    return "user_hosts" if is_user else "other"


@lru_cache(maxsize=16)
def reward_tables(scenarios: tuple[Scenario, ...], layout: Layout) -> RewardTables:
    """The weights of these networks."""
    return RewardTables(scenarios, layout)
