"""Same examples and signals in every test run; CybORG's tests are skipped where it is missing."""

import os
import signal
from pathlib import Path

import hypothesis
import pytest

from cagepool.cyborg import CybORGNotFoundError, locate

# The same few examples everywhere; no deadline, because the machine may be busy. `make nightly`
# draws other examples in every run.
hypothesis.settings.register_profile(
    "test", deadline=None, derandomize=True, max_examples=25, print_blob=True
)
hypothesis.settings.register_profile("nightly", deadline=None, max_examples=200, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("CAGEPOOL_HYPOTHESIS_PROFILE", "test"))

# Of the processes that tests start: threads of NumPy, which cost a quarter of an import, and of
# PyTorch that spin while they wait would take the cores from other tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# A background job of a shell without job control (`make test &`) inherits that SIGINT is ignored.
# Python then installs no handler, and programs that tests start would never be interrupted.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Folders and files whose tests start processes, train or draw for more than a moment.
SLOW_PATHS = (
    *("bench", "benchmarks", "cli", "envs/test_contract.py", "envs/workers", "experiments"),
    *("integrations", "manual", "policy/test_onnx_policy.py"),
    *("report/test_browser.py", "research", "runs/test_damage.py", "search", "share", "study"),
    *("test_fuzz.py", "test_optional.py", "test_sdist.py", "test_stub.py", "test_wheel.py"),
    *("train/ray", "train/test_runner.py"),
)
TESTS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests; load CybORG for tests marked `parity`, or skip them without it."""
    for item in items:
        if item.path.relative_to(TESTS).as_posix().startswith(SLOW_PATHS):
            item.add_marker(pytest.mark.slow)
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
