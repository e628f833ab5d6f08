"""Sustained throughput: episodes are counted as they end."""

import pytest

from benchmarks.suites.sustained import EpisodeTimer, SustainedConfig, measure_sustained


def test_the_timer_counts_the_episodes_that_ended() -> None:
    timer = EpisodeTimer(3)
    timer(99)
    assert timer.episodes == 0
    timer(102)
    assert timer.episodes == 2 * 3


def test_the_rate_is_that_of_all_repetitions_together() -> None:
    config = SustainedConfig(games=2, repetitions=2, seconds=0.01)
    figures = measure_sustained(config, lambda *_: None)
    ratios = figures.ratios
    seconds = figures.facts["episodes"] / ratios["episodes per second, native"]
    assert figures.facts["seconds"] == pytest.approx(seconds, abs=0.00051)  # rounded to 0.001
    target = ratios["episodes per second, native"] / 173
    assert abs(ratios["native / target of 173 episodes per second"] - target) < 1e-3
    assert ratios["episodes per second in the slowest repetition, native"] > 0
