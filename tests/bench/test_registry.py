"""The registry of benches."""

from dataclasses import replace
from typing import get_args

from cagepool.bench import BENCHES, BenchName, run_bench
from cagepool.bench.measure import Figures, Progress


def test_a_missing_library_is_named_with_its_remedy() -> None:
    bench = replace(BENCHES["engine"], libraries={"no_such_library": "pip install it"})
    assert bench.missing_library() == "needs no_such_library: pip install it"


def test_most_benches_need_nothing_but_the_package() -> None:
    free = {name for name, bench in BENCHES.items() if not bench.libraries}
    assert free == {"engine", "workers", "scaling", "stragglers"}


def test_every_name_has_an_entry() -> None:
    assert set(get_args(BenchName)) == BENCHES.keys()


def test_a_result_has_the_machine_and_what_the_bench_measured() -> None:
    options: list[bool] = []

    def measure(progress: Progress, *, quick: bool) -> Figures:
        options.append(quick)
        progress("group", 1, 1)
        return Figures(ratios={"a / b": 2.0}, facts={"bytes": 3})

    progress: list[tuple[str, int, int]] = []
    bench = replace(BENCHES["engine"], measure=measure)
    result = run_bench("mine", bench, lambda *done: progress.append(done), quick=True)

    assert (result.bench, result.ratios, result.facts) == ("mine", {"a / b": 2.0}, {"bytes": 3})
    assert result.machine["processor"]
    assert result.load_after >= 0
    assert options == [True]
    assert progress == [("group", 1, 1)]
