"""Trainer compared with that of another build."""

import shutil
from pathlib import Path

import pytest

import cagepool
from benchmarks.suites.train_peers import TrainPeersConfig, measure_train_peers
from cagepool import _core
from cagepool.bench.measure import Pace
from cagepool.bench.schema import rates

PACE = Pace(repetitions=2, seconds=0.001)


@pytest.mark.soak
def test_both_builds_collect_and_train(tmp_path: Path) -> None:
    package = Path(shutil.copytree(Path(cagepool.__file__).parent, tmp_path / "cagepool"))
    compiled = Path(_core.__file__)
    shutil.copy(compiled, package / compiled.name)

    figures = measure_train_peers(
        TrainPeersConfig(other_build=tmp_path, pace=PACE), lambda *_: None
    )

    for work in ("collection", "training"):
        rate = rates(figures.groups[work])
        assert len(rate) == 4
        ratio = rate["this build, 1 thread"] / rate["other build, 1 thread"]
        assert figures.ratios[f"this build / other build, {work}, 1 thread"] == round(ratio, 3)


def test_a_folder_without_a_build_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="other_build must be a folder with a build"):
        measure_train_peers(TrainPeersConfig(other_build=tmp_path, pace=PACE), lambda *_: None)


def test_nothing_is_measured_without_another_build() -> None:
    assert measure_train_peers(TrainPeersConfig(), lambda *_: None).ratios == {}
