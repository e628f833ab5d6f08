"""Hooks of MkDocs: pages and files of the repository outside of docs/ become part of the site.

Pages link to files beside docs/, such as `../benchmarks/results/train.json`, so that the links work
in the repository. Here those files are copied into the site, and the links lead to the copies.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PROJECT_PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
SHOWN_BY_BROWSERS = {".html", ".json", ".png", ".svg"}  # other files get the suffix .txt
CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
# Weights in the search: a reader wants a task explained before every method of that name.
BOOSTS = {"reference/": 0.3, "CHANGELOG": 0.3, "tutorials/": 1.5, "environments": 2.0}
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the project's pages, and the files outside of docs/ that any page links to."""
    pending = [page.src_uri for page in files.documentation_pages()] + [*PROJECT_PAGES]
    seen: set[str] = set()
    while pending:
        source = pending.pop()
        if source in seen:
            continue
        seen.add(source)
        if files.get_file_from_path(source) is None:
            files.append(_outside_file(source, config))
        if source.endswith(".md"):
            pending += [target for target in _outside_targets(source) if (ROOT / target).is_file()]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to files of the repository lead to their place in the site."""
    del config
    source = page.file.src_uri
    for prefix, boost in BOOSTS.items():
        if source.startswith(prefix):
            page.meta["search"] = {"boost": boost}
    if source == "index.md":
        page.meta["hide"] = ["navigation"]
    elif source.startswith("coming-from/"):  # code side by side needs the room of the contents
        page.meta["hide"] = ["toc"]

    def site_link(link: re.Match[str]) -> str:
        text, target, anchor = link[1], _repository_path(source, link[2]), link[3] or ""
        if not (ROOT / target).is_file():
            return text if (ROOT / target).is_dir() else link[0]
        name = target.removeprefix("docs/")
        if files.get_file_from_path(name) is None:
            return link[0]
        return f"[{text}]({relpath(name, dirname(source) or '.')}{anchor})"

    return "".join(
        part if part.startswith("```") else LINK.sub(site_link, part)
        for part in re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    )


def _outside_file(source: str, config: MkDocsConfig) -> File:
    file = File.generated(config, source, abs_src_path=str(ROOT / source))
    if not source.endswith(".md") and Path(source).suffix not in SHOWN_BY_BROWSERS:
        file.dest_uri += ".txt"
    return file


def _outside_targets(source: str) -> Iterator[str]:
    """Paths in the repository, outside of docs/, that a page links to."""
    text = CODE.sub("", _source_path(source).read_text(encoding="utf-8"))
    for _, target, _ in LINK.findall(text):
        path = _repository_path(source, target)
        if not path.startswith("docs/"):
            yield path


def _source_path(source: str) -> Path:
    inside = ROOT / "docs" / source
    return inside if inside.exists() else ROOT / source


def _repository_path(source: str, target: str) -> str:
    """Path in the repository of what a page links to."""
    folder = _source_path(source).relative_to(ROOT).parent.as_posix()
    return normpath(join(folder, target))
