"""A bench that cannot run here says what it needs."""

from pathlib import Path

import pytest

from cagepool.bench.registry import BENCHES


def test_a_cyborg_that_cannot_be_loaded_is_an_obstacle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CAGEPOOL_CYBORG", str(tmp_path))
    assert BENCHES["cyborg"].obstacle() == "needs CybORG: see docs/cyborg.md"


def test_most_benches_need_nothing_but_the_package() -> None:
    free = {name for name, entry in BENCHES.items() if not entry.libraries}
    assert free == {
        *("engine", "workers", "scaling", "stragglers", "true-state", "memory", "sustained")
    }
