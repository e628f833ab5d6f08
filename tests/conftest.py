"""Hypothesis profiles, and skipping of the comparisons with CybORG where it is missing."""

import os

import hypothesis
import pytest

from cagepool.cyborg import CybORGNotFoundError, locate

# The same examples in every run of CI; no deadline, because the machine may be busy.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Load CybORG for tests marked `parity`, or skip them where it is not installed."""
    parity_items = [item for item in items if item.get_closest_marker("parity")]
    if not parity_items:
        return
    try:
        locate.load()
    except CybORGNotFoundError as error:
        if locate.VARIABLE in os.environ:
            raise pytest.UsageError(str(error)) from None
        for item in parity_items:
            item.add_marker(pytest.mark.skip(reason=str(error)))
