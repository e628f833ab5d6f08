"""The ablation of the preset `minutes`."""

import pytest

from benchmarks.suites import recipe_ablation
from cagepool.train.config import TrainConfig
from cagepool.train.presets import preset_settings


@pytest.mark.parametrize("name", recipe_ablation.VARIANTS)
def test_every_variant_is_the_preset_without_one_part(name: str) -> None:
    preset = TrainConfig.from_dict(preset_settings("minutes"))
    changed = recipe_ablation.VARIANTS[name]
    config = preset.with_settings(**changed)
    assert (config != preset) == bool(changed)


def test_the_summary_has_mean_and_deviation_over_the_seeds() -> None:
    results = [
        {"variant": "minutes", "seed": seed, "total": total}
        for seed, total in ((1, -50.0), (0, -51.0))
    ]
    assert recipe_ablation.summary(results) == {
        "minutes": {"totals": [-51.0, -50.0], "mean": -50.5, "deviation": 0.707}
    }
