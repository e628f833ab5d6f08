"""Episodes are counted as they end."""

from cagepool.bench.sustained import Playing, SustainedConfig, measure_sustained


def test_a_clock_counts_the_episodes_that_ended_in_it() -> None:
    playing = Playing(3)
    playing(99)
    assert playing.episodes == 0
    playing(102)
    assert playing.episodes == 2 * 3


def test_the_rate_is_that_of_all_slices_together() -> None:
    config = SustainedConfig(games=2, slices=2, seconds=0.01)
    result = measure_sustained(config, lambda *_: None)
    rate = result.ratios["episodes a second, native"]
    assert rate == round(result.episodes / result.seconds, 3)
    assert result.ratios["native / the 173 hoped for"] == round(
        result.episodes / result.seconds / 173, 3
    )
    assert result.ratios["episodes a second in the slowest slice, native"] > 0
