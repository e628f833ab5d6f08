"""NumPy types of the records of one scenario's games."""

import numpy as np

from cagepool import _core
from cagepool.scenarios import CAGE2, Scenario
from cagepool.sim import dtypes


def true_state_dtype(scenario: Scenario) -> np.dtype[np.void]:
    """Type of a true state, as in a batch of this scenario."""
    if scenario == CAGE2:
        return dtypes.TRUE_STATE
    return dtypes.trimmed(dtypes.SCENARIO_TRUE_STATE, len(scenario.hosts))


def moves_dtype(scenario: Scenario) -> np.dtype[np.void]:
    """Type of the moves of a step, as in a batch of this scenario."""
    return dtypes.MOVES if scenario == CAGE2 else dtypes.SCENARIO_MOVES


def trace_row_dtype(scenario: Scenario) -> np.dtype[np.void]:
    """Type of a step with the fields of a trace of this scenario (docs/traces.md)."""
    if scenario == CAGE2:
        return dtypes.TRACE_ROW
    hosts, subnets = len(scenario.hosts), len(scenario.subnets)
    shapes = {"obs": (4 * hosts,), "s_meander": (4, hosts), "s_known_net": (subnets,)}
    bases = {"green_host": np.int16, "red_target": np.int16}
    fields = []
    for name, (kind, *_) in (dtypes.SCENARIO_TRACE_ROW.fields or {}).items():
        shape = (hosts,) if kind.shape == (_core.MAX_HOSTS,) else kind.shape
        fields.append((name, bases.get(name, kind.base), shapes.get(name, shape)))
    return np.dtype(fields)
