"""Environment variables of subprocesses."""

import os


def environ_without_coverage() -> dict[str, str]:
    """Environment for a process that cannot write coverage data: no permission, or no disk."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
