"""A study on a Ray cluster."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cagepool.study.study import create_or_open, run_study
from tests.study.short_study import Recorder, numbers, short_study
from tests.train.ray.local_cluster import two_nodes

pytestmark = [pytest.mark.ray, pytest.mark.soak]


def test_a_study_on_a_cluster_has_the_numbers_of_a_local_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = short_study()
    for name in ("local", "cluster"):
        create_or_open(tmp_path / name, study)
    run_study(tmp_path / "local", jobs=2)
    # Paths of pytest's folders are too long for Ray's sockets.
    with TemporaryDirectory() as folder:
        monkeypatch.setenv("TMPDIR", folder)
        with two_nodes():
            is_complete, results = run_study(tmp_path / "cluster", Recorder(), jobs=2, on_ray=True)
    assert is_complete
    assert not results.failures
    assert numbers(tmp_path / "cluster", study) == numbers(tmp_path / "local", study)
