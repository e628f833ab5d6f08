"""Environment variables and time limit of subprocesses."""

import os

# A wait for another process ends as soon as the process does what it should. The limit is so long
# that only a test that would never end passes it, however busy the machine is.
LIMIT_S = 600.0


def environ_without_coverage() -> dict[str, str]:
    """Environment for a process that cannot write coverage data: no permission, or no disk."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
