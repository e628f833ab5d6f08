"""Hands scenarios to CybORG, which reads them and their images from disk."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cagepool.cyborg import locate
from cagepool.scenarios import Scenario


@contextmanager
def open_scenario_file(scenario: Scenario, file: Path | None) -> Iterator[str]:
    """Path of a scenario's file, for CybORG to load inside the `with` block.

    Args:
        scenario: The scenario.
        file: From which the scenario was read; by default it is saved to a temporary folder.
    """
    with TemporaryDirectory(prefix="cagepool-") as folder:
        path = file or Path(folder) / "scenario.yaml"
        if file is None:
            scenario.save(path)
        with _added_images(scenario.own_images), _compiled_parser():
            yield str(path)


@contextmanager
def _added_images(images: Mapping[str, Any]) -> Iterator[None]:
    """Let CybORG know further images while it loads a scenario.

    CybORG reads images from its own folder only. That folder stays as it is: the method that reads
    them is replaced inside the `with` block.
    """
    if not images:
        yield
        return
    controller: Any = locate.import_object("Simulator.SimulationController.SimulationController")
    original = controller._parse_scenario  # noqa: SLF001 - CybORG has no public way

    def parse_scenario(self: Any, path: str, scenario_mod: Any = None) -> Any:
        content = super(controller, self)._parse_scenario(path, scenario_mod)
        for host in content["Hosts"].values():
            name = host.pop("image")
            host.update(deepcopy(dict(images[name])) if name in images else _built_in_image(name))
        return content

    controller._parse_scenario = parse_scenario  # noqa: SLF001
    try:
        yield
    finally:
        controller._parse_scenario = original  # noqa: SLF001


@contextmanager
def _compiled_parser() -> Iterator[None]:
    """Let CybORG read YAML with libyaml's parser, which is much faster than PyYAML's own."""
    yaml: Any = sys.modules["yaml"]  # that CybORG has imported
    original = yaml.FullLoader
    yaml.FullLoader = getattr(yaml, "CFullLoader", original)
    try:
        yield
    finally:
        yaml.FullLoader = original


def _built_in_image(name: str) -> Any:
    """Content of an image file of the loaded CybORG."""
    folder = locate.package_folder(sys.modules["CybORG"]) / "Shared" / "Scenarios" / "images"
    from cagepool.scenarios.yaml_reader import read_yaml  # noqa: PLC0415 - needs msgspec

    index = read_yaml(folder / "images.yaml")
    return read_yaml(folder / f"{index[name]['path']}.yaml")["Test_Host"]
