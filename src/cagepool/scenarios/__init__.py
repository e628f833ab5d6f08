"""Scenarios: CAGE-2's, files, random members, suites (docs/scenarios.md)."""

from cagepool.scenarios.cage2 import CAGE2
from cagepool.scenarios.scenario import Layout, Scenario
from cagepool.scenarios.suites import SuiteRow, resolve_scenarios, suite_scenarios, suite_table
from cagepool.scenarios.tables import Tables

__all__ = [
    "CAGE2",
    "Layout",
    "Scenario",
    "SuiteRow",
    "Tables",
    "resolve_scenarios",
    "suite_scenarios",
    "suite_table",
]
