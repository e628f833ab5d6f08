"""The page in a real browser: it shows everything without a network, and the replay plays."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from cagepool.report import write_report
from tests.report import run_folders

CHROMIUM = shutil.which("chromium")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)
WIDTHS = (1280, 820, 400)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page about two runs that were evaluated and one that was not."""
    root = tmp_path_factory.mktemp("runs")
    out = root / "report.html"
    runs = [
        run_folders.evaluated(root / "first"),
        run_folders.evaluated(root / "second", blue="react-restore", seed=3),
        run_folders.trained(root / "third", seed=4),
    ]
    write_report(runs, out)
    return out


class Watched:
    """An open page, what it complained of and what it asked for."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri())

    def step(self) -> str:
        return self.page.locator("#count").inner_text()


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Watched]:
    page = browser.new_page(viewport={"width": WIDTHS[0], "height": 900})
    watched = Watched(page, report)
    yield watched
    page.close()
    assert watched.complaints == []
    assert watched.requests == [report.as_uri()]


def test_play_advances_to_the_end_and_pause_stops(opened: Watched) -> None:
    page = opened.page
    assert opened.step() == "1 of 100"
    page.select_option("#speed", "15")
    page.get_by_role("button", name="Play").click()
    expect(page.locator("#count")).to_have_text(re.compile("^[3-9] of 100"))
    page.get_by_role("button", name="Pause").click()
    stopped = opened.step()
    page.wait_for_timeout(200)
    assert opened.step() == stopped

    page.locator("#slider").fill("98")
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()  # it is over
    assert opened.step() == "100 of 100"


def test_slider_buttons_keys_and_list_all_choose_the_step(opened: Watched) -> None:
    page = opened.page
    page.locator("#slider").fill("41")
    assert opened.step() == "42 of 100"
    page.get_by_role("button", name="Next step").click()
    assert opened.step() == "43 of 100"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert opened.step() == "41 of 100"
    page.locator("#log tr").nth(4).click()
    assert opened.step() == "5 of 100"
    expect(page.locator("#log .now td").first).to_have_text("5")


def test_pressing_on_the_chart_goes_to_that_step(opened: Watched) -> None:
    chart = opened.page.locator("#chart svg")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box
    opened.page.mouse.click(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    assert opened.step() == "100 of 100"


def test_the_chosen_game_is_shown_with_its_own_total(opened: Watched) -> None:
    page = opened.page
    games = page.locator("#game option")
    worst = games.filter(has_text="second: worst game against B_lineAgent")
    total = worst.inner_text().rpartition("(")[2].rstrip(")")
    page.select_option("#game", worst.get_attribute("value"))
    page.locator("#slider").fill("99")
    expect(page.locator("#total")).to_have_text(total)


def test_truth_and_belief_stand_side_by_side_on_every_host(opened: Watched) -> None:
    page = opened.page
    cards = page.locator("#network [data-host]")
    expect(cards).to_have_count(13)
    expect(page.locator('[data-host="User0"]')).to_contain_text("truthprivileged")
    assert all("blue sees" in text for text in cards.all_text_contents())


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out_of_the_window(opened: Watched, width: int) -> None:
    opened.page.set_viewport_size({"width": width, "height": 900})
    expect(opened.page.locator("#network svg")).to_be_visible()
    assert opened.page.evaluate("document.documentElement.scrollWidth") == width
    box = opened.page.locator('[data-host="Op_Server0"]').bounding_box()
    assert box
    assert box["width"] > 130  # large enough to read


def test_runs_are_compared(opened: Watched) -> None:
    page = opened.page
    expect(page.locator("h1")).to_have_text("3 runs compared")
    expect(page.locator(".scores tbody .own")).to_have_count(2)
    expect(page.locator("#settings table").first).to_contain_text("seed")
    expect(page.locator("#scores .missing")).to_contain_text("third has not been evaluated yet")


def test_a_page_without_games_has_no_player(browser: Browser, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    write_report([run_folders.trained(tmp_path / "run")], out)
    page = browser.new_page()
    watched = Watched(page, out)
    expect(page.locator("#player")).to_be_hidden()
    expect(page.locator("#replay .missing")).to_contain_text("cagepool evaluate")
    page.close()
    assert watched.complaints == []
