"""Networks other than that of CAGE-2: files, random members, suites (docs/scenarios.md)."""

from cagepool.scenarios.cage2 import CAGE2
from cagepool.scenarios.resolve import resolve_scenarios
from cagepool.scenarios.scenario import Layout, Scenario

__all__ = ["CAGE2", "Layout", "Scenario", "resolve_scenarios"]
