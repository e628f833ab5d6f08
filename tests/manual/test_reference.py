"""The reference shows all commands and all public names, and the navigation all pages."""

import inspect
import re
from importlib import import_module
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any

import pytest
from mkdocs.utils.yaml import yaml_load

from manual.cli_reference import PAGE, page
from manual.hooks import PROJECT_PAGES
from tests.test_documents import ROOT

REFERENCE = ROOT / "docs" / "reference"
PUBLIC_PACKAGES = (
    "cagepool",
    "cagepool.envs",
    "cagepool.scenarios",
    "cagepool.sim",
    "cagepool.evaluate",
    "cagepool.cyborg",
)
DOCUMENTED = [
    name
    for file in sorted(REFERENCE.glob("*.md"))
    for name in re.findall(r"^::: (\S+)", file.read_text(encoding="utf-8"), re.MULTILINE)
]


def nav_pages(nav: Any) -> list[str]:
    """All pages of a navigation, in its order."""
    if isinstance(nav, str):
        return [nav]
    entries = nav.values() if isinstance(nav, dict) else nav
    return [page for entry in entries for page in nav_pages(entry)]


def test_the_page_of_the_command_line_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make pages`"


def test_every_page_is_in_the_navigation_once() -> None:
    config = yaml_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = nav_pages(config["nav"])
    docs = ROOT / "docs"
    pages = [str(path.relative_to(docs)) for path in docs.rglob("*.md")]
    outside = [name for name in listed if not (docs / name).exists()]
    assert sorted(listed) == sorted([*pages, *outside])
    assert {*PROJECT_PAGES} <= {*outside}
    assert all((ROOT / name).is_file() for name in outside)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_name_in_the_reference_exists_and_is_described(name: str) -> None:
    if name.startswith("cagepool.jax") and find_spec("jax") is None:
        pytest.skip("needs JAX: make test-jax")
    found = resolve_name(name)
    if inspect.isclass(found) or inspect.isfunction(found):
        assert found.__doc__


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_every_public_name_of_a_package_is_in_the_reference(package: str) -> None:
    names = {name for name in import_module(package).__all__ if not name.startswith("_")}
    assert names <= {name.rpartition(".")[2] for name in DOCUMENTED}
