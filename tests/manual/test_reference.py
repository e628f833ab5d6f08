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
FACADES = (
    *("cagepool", "cagepool.envs", "cagepool.scenarios", "cagepool.sim", "cagepool.policy"),
    *("cagepool.evaluate", "cagepool.cyborg", "cagepool.train", "cagepool.study"),
    *("cagepool.integrations", "cagepool.jax"),
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


def module_names() -> set[str]:
    """Names of modules that the reference shows as a whole."""
    found = [resolve_name(name) for name in DOCUMENTED if not name.startswith("cagepool.jax")]
    return {name for one in found if inspect.ismodule(one) for name in vars(one)}


@pytest.mark.parametrize("package", FACADES)
def test_the_reference_lists_the_names_of_a_facade(package: str) -> None:
    if package == "cagepool.jax" and find_spec("jax") is None:
        pytest.skip("needs JAX: make test-jax")
    facade = import_module(package)
    names = {name for name in facade.__all__ if not name.startswith("_")}
    assert names <= {part for name in DOCUMENTED for part in name.split(".")} | module_names()
    assert all(hasattr(facade, name) or find_spec(f"{package}.{name}") for name in names)
    listed = {name for name in DOCUMENTED if name.rpartition(".")[0] == package}
    internal = {name for name in listed if name.rpartition(".")[2] not in names}
    assert {name for name in internal if not inspect.ismodule(resolve_name(name))} == set()
