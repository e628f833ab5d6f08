"""Changes are told from noise, whatever the machine did between two runs."""

import math
import time

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from cagepool.bench import schema as comparison
from cagepool.bench.measure import Contender, Pace, measure_interleaved, time_calls
from cagepool.bench.schema import BenchResult, Change, Measurement, compare_results, log_shift
from tests.bench.results import result, row

TURNS = 15


def sample(seed: int, cost: float = 100.0, spread: float = 0.03) -> NDArray[np.float64]:
    """Turns of a contender, with a tail as a busy machine makes it."""
    draw = np.random.default_rng(seed)
    return cost * (1 + np.abs(draw.normal(0, spread, TURNS)))


def one(before: Measurement, after: Measurement) -> Change:
    (change,) = compare_results(result(before), result(after)).changes
    return change


def test_the_same_twice_is_no_change_however_often_one_looks() -> None:
    verdicts = {one(row(sample(seed)), row(sample(seed + 1000))).verdict for seed in range(200)}
    assert verdicts == {"no change"}


@pytest.mark.parametrize(("factor", "verdict"), [(1.1, "slower"), (1 / 1.1, "faster")])
def test_a_tenth_is_told_every_time(factor: float, verdict: str) -> None:
    found = [one(row(sample(s)), row(sample(s + 1000, 100 * factor))) for s in range(200)]
    assert {change.verdict for change in found} == {verdict}
    middle = np.median([change.change for change in found])
    assert middle == pytest.approx(factor - 1, abs=0.01)  # 200 draws of 3 % noise


def test_a_change_too_small_to_matter_is_none_however_certain() -> None:
    change = one(row(sample(0, spread=1e-4)), row(sample(1, 104, spread=1e-4)))
    assert change.verdict == "no change"
    assert change.change == pytest.approx(0.04, abs=0.001)  # its noise


def test_what_the_machine_itself_lost_is_no_change() -> None:
    speed = np.linspace(1, 1.6, TURNS)  # the machine slows down, and was slower from the start
    before = row(sample(0) * speed, reference=0.001 * speed)
    after = row(sample(1) * 1.5 * speed, reference=0.0015 * speed)
    assert one(before, after).verdict == "no change"
    assert one(row(sample(0)), row(sample(1) * 1.5)).verdict == "slower"


def test_a_change_shows_although_the_machine_became_faster() -> None:
    before = row(sample(0), reference=[0.001] * TURNS)
    after = row(sample(1) * 1.1 * 0.8, reference=[0.0008] * TURNS)
    change = one(before, after)
    assert change.verdict == "slower"
    assert change.after_ns < change.before_ns


def test_one_wild_turn_is_no_change() -> None:
    wild = sample(1)
    wild[3] *= 50
    assert one(row(sample(0)), row(wild)).verdict == "no change"


def test_where_noise_is_large_only_larger_changes_are_told() -> None:
    change = one(row(sample(0, spread=0.6)), row(sample(1, 110, spread=0.6)))
    assert change.verdict == "no change"
    assert change.noise > 0.15
    assert one(row(sample(0, spread=0.6)), row(sample(1, 300, spread=0.6))).verdict == "slower"


def test_few_turns_prove_nothing() -> None:
    assert one(row([100, 101, 102]), row([200, 201, 202])).verdict == "no change"
    assert log_shift([1, 2, 3], [4, 5, 6])[1] == math.inf


@pytest.mark.parametrize(("first", "second"), [(5, 5), (7, 9), (15, 15)])
def test_the_interval_agrees_with_the_exact_test(first: int, second: int) -> None:
    """By definition it has 0 in it unless the test rejects, also for values just apart."""
    draw = np.random.default_rng(first)
    outcomes = set()
    for _ in range(100):
        before = np.exp(draw.normal(0, 1, first))
        after = np.exp(draw.normal(1.8, 1, second))
        differences = np.sort(np.subtract.outer(np.log(after), np.log(before)).ravel())
        cut = comparison._trimmed_pairs(first, second, comparison.ERROR_RATE)
        apart = differences[cut - 1] > 0 or differences[-cut] < 0
        rejected = bool(mannwhitneyu(before, after, method="exact").pvalue <= comparison.ERROR_RATE)
        assert apart == rejected
        outcomes.add(apart)
    assert outcomes == {True, False}


def test_of_many_contenders_none_is_taken_for_changed_by_chance() -> None:
    """With 1 % each, two of 200 would be; noise is large, so that only the test protects them."""
    noisy = [row(sample(seed, spread=0.5), games=seed) for seed in range(200)]
    again = [row(sample(seed + 1000, spread=0.5), games=seed) for seed in range(200)]
    alone = [one(old, new).verdict for old, new in zip(noisy, again, strict=True)]
    together = compare_results(result(*noisy), result(*again)).changes

    assert alone.count("no change") < 200
    assert {change.verdict for change in together} == {"no change"}


def test_what_others_took_counts_as_noise() -> None:
    before, after = result(row(sample(0))), result(row(sample(1) * 1.4))
    assert compare_results(before, after).changes[0].verdict == "slower"
    busy = structs.replace(after, busy_elsewhere=0.4)
    (change,) = compare_results(before, busy).changes
    assert (change.verdict, round(change.noise, 3)) == ("no change", 0.667)
    unknown = structs.replace(after, busy_elsewhere=None)
    assert compare_results(before, unknown).changes[0].verdict == "slower"


def test_contenders_are_told_apart_by_their_settings() -> None:
    before = result(row(sample(0), games=1), row(sample(1), games=2), row(sample(2), games=3))
    after = result(row(sample(3) * 2, games=2), row(sample(4), games=1), row(sample(2), games=4))
    found = compare_results(before, after)
    assert [(change.settings["games"], change.verdict) for change in found.changes] == [
        (1, "no change"),
        (2, "slower"),
    ]
    assert found.removed == ["batch: Batch.step, games 3"]
    assert found.added == ["batch: Batch.step, games 4"]


def test_another_machine_is_told_but_not_another_commit() -> None:
    found = compare_results(result(), result(commit="def", load=3.0, python="3.12.0", ray="2.60"))
    assert found.machine == {"python": ("3.11.7", "3.12.0"), "ray": (None, "2.60")}


def test_different_benches_are_not_compared() -> None:
    with pytest.raises(ValueError, match=r"of the same bench, got engine and workers$"):
        compare_results(result(), result(bench="workers"))


def measured(work: int) -> BenchResult:
    """A real contender that does so much of fixed work, measured."""

    def call() -> None:
        for number in range(work):
            hash(number)

    timer = time_calls(call)
    contender = Contender(name="work", settings={}, steps_per_call=1, timer=timer)
    pace = Pace(repetitions=TURNS, seconds=0.01)
    return result(*measure_interleaved([contender], pace, lambda: None))


@pytest.mark.soak
def test_real_work_is_compared_with_itself_and_with_a_tenth_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In CPU time, and one of six attempts: other processes use the machine too."""
    monkeypatch.setattr("time.perf_counter", time.thread_time)
    verdicts = []
    for _ in range(6):
        before, same, more = measured(10_000), measured(10_000), measured(11_000)
        (again,) = compare_results(before, same).changes
        (slower,) = compare_results(before, more).changes
        if max(again.noise, slower.noise) < 0.07:
            verdicts.append((again.verdict, slower.verdict))
        if ("no change", "slower") in verdicts:
            return
    if not verdicts:
        pytest.skip(f"the machine is too busy to see a tenth: {slower.noise:.0%} noise")
    pytest.fail(f"no attempt told a tenth from noise: {verdicts}")
