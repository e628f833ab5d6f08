"""What is said about rates follows from the rates."""

import pytest

from cagepool.bench import sweep

RATES = {
    "loop": {1: 100.0, 10: 200.0, 100: 200.0},
    "workers": {1: 50.0, 10: 400.0, 100: 800.0},
    "pipes": {1: 10.0, 10: 40.0},
}


def test_efficiency_is_what_is_left_of_the_rate_of_one_times_their_number() -> None:
    assert sweep.efficiency(RATES["loop"]) == {1: 1.0, 10: 0.2, 100: 0.02}


def test_the_best_is_the_fastest_of_those_that_were_measured() -> None:
    assert [sweep.best(RATES, size) for size in (1, 10, 100)] == ["loop", "workers", "workers"]


def test_a_crossing_lies_where_the_rates_would_be_equal() -> None:
    # The lead of the loop goes from twice to half as fast: halfway between 1 and 10, as powers.
    (only,) = sweep.crossings(RATES)
    assert (only.overtaken, only.faster) == ("loop", "workers")
    assert only.environments == pytest.approx(10**0.5)


def test_rates_that_meet_and_part_again_have_no_crossing() -> None:
    assert (
        list(sweep.crossings({"a": {1: 2.0, 2: 2.0, 3: 2.0}, "b": {1: 1.0, 2: 2.0, 3: 1.0}})) == []
    )


def test_advice_puts_sizes_with_the_same_best_together() -> None:
    assert sweep.advice(RATES) == [
        sweep.Advice(1, 1, "loop"),
        sweep.Advice(10, 100, "workers"),
    ]


def test_costs_are_fitted_by_the_fullest_of_the_processes() -> None:
    rates = {size: size / (5.0 + 2.0 * -(-size // 2)) for size in (2, 3, 10, 101)}
    assert sweep.fitted(rates, processes=2) == pytest.approx((5, 2))
