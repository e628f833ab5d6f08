"""The site builds without a warning, and a browser reads and searches it without a network."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright

from tests.report.test_browser import CHROMIUM, FLAGS
from tests.test_documents import ROOT

pytestmark = pytest.mark.soak

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the path")
PHONE, DESKTOP = 390, 1280
# The widest tables, code side by side, an API page and a generated page.
PAGES = ("results.html", "coming-from/cyborg.html", "reference/envs.html", "reference/cli.html")
# A word that a reader types, and the page that must be among the first results.
SEARCHES = [
    ("restore", ("environments.html", "tutorials/planning.html")),
    ("masking", ("environments.html", "training.html")),
    ("seed", ("environments.html", "explanation/statistics.html")),
]
FIRST_RESULTS = 5


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir"]
    done = subprocess.run(
        [*command, str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def open_page(browser: Browser, url: str, width: int) -> tuple[Page, list[str]]:
    """An open page, and its complaints and requests to other hosts."""
    page = browser.new_page(viewport={"width": width, "height": 850})
    page.set_default_timeout(120_000)  # the first page of a browser takes half a minute under load
    strange: list[str] = []
    host = urlsplit(url).netloc

    def note_request(request: Request) -> None:
        if urlsplit(request.url).netloc not in ("", host):
            strange.append(request.url)

    page.on("pageerror", lambda error: strange.append(str(error)))
    page.on("request", note_request)
    page.goto(url)
    return page, strange


def test_the_site_has_a_page_per_document(site: Path) -> None:
    documents = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert not [path for path in documents if not (site / path.with_suffix(".html")).is_file()]


def test_linked_files_of_the_repository_are_part_of_the_site(site: Path) -> None:
    copied = site / "benchmarks" / "results" / "train.json"
    assert copied.read_bytes() == (ROOT / "benchmarks" / "results" / "train.json").read_bytes()
    assert (site / "examples" / "ppo_single_file.py.txt").is_file()
    assert "examples/ppo_single_file.py.txt" in (site / "integrations.html").read_text()


@needs_browser
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_needs_no_network_and_is_not_wider_than_the_window(
    browser: Browser, address: str, name: str, width: int
) -> None:
    page, strange = open_page(browser, f"{address}/{name}", width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert strange == []
    page.close()


@needs_browser
@pytest.mark.parametrize(("word", "wanted"), SEARCHES, ids=[word for word, _ in SEARCHES])
def test_a_search_finds_the_right_page(
    browser: Browser, address: str, word: str, wanted: tuple[str, ...]
) -> None:
    page, strange = open_page(browser, f"{address}/index.html?q={quote(word)}", DESKTOP)
    page.wait_for_selector(".md-search-result__link", state="attached", timeout=30_000)
    links = page.eval_on_selector_all(
        ".md-search-result__item > a.md-search-result__link", "links => links.map(a => a.href)"
    )
    found = [*dict.fromkeys(urlsplit(link).path.lstrip("/") for link in links)][:FIRST_RESULTS]
    assert {*wanted} & {*found}, found
    assert strange == []
    page.close()
