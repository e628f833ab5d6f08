"""Sample scenario files, and files that are changed in one place."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from cagepool import Scenario

FOLDER = Path(__file__).parents[1] / "golden" / "scenarios"
TABLES: dict[str, Any] = json.loads((FOLDER / "tables.json").read_text(encoding="utf-8"))
SAMPLES = sorted(TABLES)

Content = dict[str, Any]


@cache
def sample(name: str) -> Scenario:
    return Scenario.load(FOLDER / f"{name}.yaml")


def content_of(name: str = "cage2_rebuilt") -> Content:
    content: Content = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return content


def write(folder: Path, content: object) -> Path:
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


def load_changed(folder: Path, change: Callable[[Content], object]) -> Scenario:
    """Load the competition's file after a change of its content."""
    content = content_of()
    change(content)
    return Scenario.load(write(folder, content))
