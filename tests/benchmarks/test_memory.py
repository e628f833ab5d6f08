"""Memory of all processes, and its slope by number of environments."""

import sys

import pytest

from benchmarks.suites.memory import Memory, memory_figures, memory_of


def memory(count: int, grown: int = 0) -> Memory:
    return Memory(
        environments=count,
        workers=0,
        bytes=1000 + 7 * count,
        resident_bytes=0,
        shared_bytes=3 * count,
        processes=1,
        grown_bytes=grown,
    )


def test_figures_are_bytes_per_additional_environment_and_growth() -> None:
    names = ("native", "sync", "pipes", "workers, by environments", "workers, by workers")
    series = {
        **{name: [memory(count) for count in (1, 10, 100)] for name in names},
        "growth, native": [memory(100, grown=0)],
        "growth, workers": [memory(100, grown=4096)],
    }
    figures = memory_figures(series, steps=1000)
    assert figures["bytes per native game"] == 7
    assert figures["bytes per worker"] == 7
    assert figures["bytes per environment in workers, shared block"] == 3
    assert figures["bytes of growth in 1,000 steps, workers"] == 4096


@pytest.mark.skipif(sys.platform != "linux", reason="workers need Linux")
def test_memory_is_that_of_a_new_process_and_its_workers() -> None:
    measured = memory_of("workers", 2, 2, 100)
    assert measured.processes == 1 + 2
    assert measured.resident_bytes >= measured.bytes > 3 * 2**20
    assert 0 < measured.shared_bytes < measured.bytes
