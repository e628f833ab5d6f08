"""Settings of all tests."""

import os
from importlib.util import find_spec

import hypothesis
import pytest

# The same examples in every run of CI; no deadline, because a busy machine is not a mistake.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the comparisons with CybORG where there is none."""
    if find_spec("CybORG") or os.environ.get("CAGEPOOL_CYBORG"):
        return
    for item in items:
        if item.get_closest_marker("parity"):
            item.add_marker(
                pytest.mark.skip(reason="CybORG is not installed, nor named by CAGEPOOL_CYBORG")
            )
