"""Links between the documents lead somewhere, and paths that they name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
CODE_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def page_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Anchors of all headings, as GitHub makes them."""
    text = CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    for target, anchor in LINK.findall(CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_paths_and_names_in_a_document_exist(name: str) -> None:
    text = CODE_BLOCK.sub("", (ROOT / name).read_text(encoding="utf-8"))
    folders = "src|cpp|docs|tests|benchmarks|research|examples|manual|\\.github|\\.ci"
    references = re.findall(rf"`((?:{folders})/[\w./-]*)(?:::(\w+))?`", text)
    assert references
    for path, member in references:
        assert (ROOT / path).exists(), path
        if member:
            source = (ROOT / path).read_text(encoding="utf-8")
            python = rf"\b(def|class) {member}\b|^{member}\b.* ="
            definition = python if path.endswith(".py") else rf"\b{member}\b"
            assert re.search(definition, source, re.MULTILINE), f"{path}::{member}"
