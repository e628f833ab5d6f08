"""The page in a real browser: it shows everything without a network, and the replay plays."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from cagepool.envs import Cage2Env
from cagepool.render import drawing as frames
from cagepool.render.plan import CARD, CELL, wide_layout
from cagepool.report import write_report
from cagepool.scenarios import CAGE2
from cagepool.sim.names import action_index
from tests.report import run_folders
from tests.scenarios.files import sample

CHROMIUM = shutil.which("chromium")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)
WIDTHS = (1280, 820, 400)
A4_WIDTH = 718  # CSS pixels between the default margins
WIDTHS_OF_BAR_NUMBERS = """[...document.querySelectorAll(".bar span")].flatMap((part) => {
  const number = document.createRange(), box = part.getBoundingClientRect();
  number.selectNodeContents(part);
  const { top, width } = number.getBoundingClientRect();
  return top < box.bottom ? [[width, box.width]] : [];
})"""  # of the numbers that are in view, each with the width of its part of the bar

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the path")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=60_000)  # on a busy machine
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
        page.set_default_timeout(60_000)
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
    page.select_option("#speed", "5")
    page.get_by_role("button", name="Play").click()
    expect(page.locator("#count")).to_have_text(re.compile(r"^([3-9]|\d\d) of 100"))
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


def test_keys_drive_the_replay_only_while_it_is_in_view(opened: Watched) -> None:
    page = opened.page
    for press in ("ArrowRight", "ArrowRight", " "):
        page.keyboard.press(press)  # at the top of the page, above the replay
    assert opened.step() == "1 of 100"
    expect(page.get_by_role("button", name="Play")).to_be_attached()
    page.locator("#drawing").scroll_into_view_if_needed()
    page.keyboard.press("ArrowRight")
    assert opened.step() == "2 of 100"


def test_a_control_that_is_scrolled_out_of_view_gives_the_keys_back(opened: Watched) -> None:
    page = opened.page
    page.get_by_role("button", name="Next step").click()
    assert opened.step() == "2 of 100"
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    expect(page.locator(":focus")).to_have_count(0)  # polls without eval, which the page forbids
    page.keyboard.press(" ")
    page.keyboard.press("ArrowRight")
    assert opened.step() == "2 of 100"


def test_controls_are_not_printed(opened: Watched) -> None:
    controls = opened.page.locator(".bar-of-controls, .log, nav")
    assert all(control.is_visible() for control in controls.all())
    opened.page.emulate_media(media="print")
    assert not any(control.is_visible() for control in controls.all())
    expect(opened.page.locator("#drawing svg")).to_be_visible()


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
    cards = page.locator("#drawing [data-host]")
    expect(cards).to_have_count(13)
    expect(page.locator('[data-host="User0"]')).to_contain_text("truthprivileged")
    assert all("blue sees" in text for text in cards.all_text_contents())


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out_of_the_window(opened: Watched, width: int) -> None:
    opened.page.set_viewport_size({"width": width, "height": 900})
    expect(opened.page.locator("#drawing svg")).to_be_visible()
    assert opened.page.evaluate("document.documentElement.scrollWidth") == width
    box = opened.page.locator('[data-host="Op_Server0"]').bounding_box()
    assert box
    assert box["width"] > 130  # large enough to read


def test_the_replay_shows_the_exact_belief_beside_the_truth(opened: Watched) -> None:
    page = opened.page
    page.locator("#slider").fill("2")  # B_line has exploited a user host
    expect(page.locator("#attacker")).to_have_text(re.compile("believes: B_lineAgent 100 %"))
    expect(page.locator("#drawing .belief")).to_have_count(13)
    labels = page.locator("#drawing [data-host]").evaluate_all(
        "cards => cards.map(card => card.getAttribute('aria-label'))"
    )
    believed = [re.search(r"exact belief (\d+) % privileged, (\d+) % user", x) for x in labels]
    shares = [(int(found[1]), int(found[2])) for found in believed if found]
    assert sum(sum(share) == 100 for share in shares) == 2  # the foothold, and that host
    assert sum(0 < share[0] < 100 for share in shares) == 1


def test_games_that_were_recorded_without_beliefs_still_play(
    browser: Browser, tmp_path: Path
) -> None:
    run = run_folders.evaluated(tmp_path / "run")
    games = json.loads((run / "games.json").read_text())
    for turn in (turn for game in games["games"] for turn in game["turns"]):
        for name in [name for name in turn if name.startswith("believed_")]:
            del turn[name]
    (run / "games.json").write_text(json.dumps(games))
    write_report([run], tmp_path / "page.html")
    page = browser.new_page()
    watched = Watched(page, tmp_path / "page.html")
    expect(page.locator("#drawing .cell").first).to_be_visible()
    expect(page.locator("#drawing .belief")).to_have_count(0)
    page.close()
    assert watched.complaints == []


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


CELL_FILLS = """cards => Object.fromEntries(cards.map(card => [
  card.dataset.host,
  [...card.querySelectorAll(".cell")].map(cell => getComputedStyle(cell).fill),
]))"""


def test_the_page_and_a_frame_draw_each_host_alike(opened: Watched, report: Path) -> None:
    games = json.loads((report.parent / "first" / "games.json").read_text())
    game = next(game for game in games["games"] if game["red"] == "B_lineAgent")
    env = Cage2Env(red=game["red"], green=False, render_mode="rgb_array")
    env.reset(seed=game["seed"])
    places = wide_layout().hosts
    for step, turn in enumerate(game["turns"][:30]):
        env.step(action_index(turn["blue"]))
        if step % 4:
            continue
        opened.page.locator("#slider").fill(str(step))
        cards = opened.page.locator("#drawing [data-host]")
        fills = cards.evaluate_all(CELL_FILLS)
        frame = np.asarray(env.render())
        top = 2 * frames.MARGIN + frames.PANEL_HEIGHT
        for host, (x, y) in places.items():
            y_cell = round(y + CELL["y"] + 4) + top
            right = frames.MARGIN + round(x + CARD["width"] - CARD["padding"]) - 4
            left = frames.MARGIN + round(x + CARD["padding"] + CELL["width"]) - 4
            drawn = [
                f"rgb({', '.join(map(str, frame[y_cell, column]))})" for column in (left, right)
            ]
            assert drawn == fills[host], (step, host)
    placed = cards.evaluate_all(
        "cards => cards.map(c => [c.dataset.host, c.getAttribute('transform')])"
    )
    assert dict(placed) == {host: f"translate({x:g} {y:g})" for host, (x, y) in places.items()}


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page about one run that was trained to an order."""
    root = tmp_path_factory.mktemp("single")
    run = run_folders.trained(root / "run")
    reason = "compliance did not rise in the last 12 updates and is below its threshold of 0.95"
    outcome = {"format": 1, "order": "op_server>enterprise>op_host>user>defender",
               "outcome": "stalled", "reason": reason, "mean": -14.5, "standard_error": 0.25,
               "episodes": 200, "compliance": 0.61, "coverage": 0.5, "decisions": 20.5,
               "wasted_fixes": 0.5, "passes": False}  # fmt: skip
    (run / "workflow.json").write_text(json.dumps(outcome))
    write_report([run], root / "page.html")
    return root / "page.html"


@pytest.mark.parametrize("width", [1280, 1000, 900, 820, 640, 400])
def test_the_strip_of_figures_has_no_hole(browser: Browser, single: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(single.as_uri())
    boxes = [tile.bounding_box() for tile in page.locator(".tiles > div").all()]
    page.close()
    per_row = Counter(box["y"] for box in boxes if box)
    assert len({*per_row.values()}) == 1


@pytest.mark.parametrize("width", [900, 400])
def test_why_training_ended_is_not_cut(browser: Browser, single: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(single.as_uri())
    place = page.get_by_text("stalled: compliance did not rise")
    section = page.locator("#order").bounding_box()
    box = place.bounding_box()
    page.close()
    assert section
    assert box
    assert box["x"] + box["width"] <= section["x"] + section["width"]


def test_the_total_of_the_scores_is_in_view_at_900_pixels(browser: Browser, report: Path) -> None:
    page = browser.new_page(viewport={"width": 900, "height": 900})
    page.goto(report.as_uri())
    hidden = page.locator("#scores .scroll").evaluate("box => box.scrollWidth - box.clientWidth")
    page.close()
    assert hidden == 0


def test_a_printed_page_is_not_wider_than_the_paper(browser: Browser, report: Path) -> None:
    page = browser.new_page(viewport={"width": A4_WIDTH, "height": 1000})
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    width = page.evaluate("document.documentElement.scrollWidth")
    page.close()
    assert width <= A4_WIDTH


@pytest.mark.parametrize("width", WIDTHS)
def test_no_number_in_a_bar_is_cut(browser: Browser, report: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(report.as_uri())
    shown = page.evaluate(WIDTHS_OF_BAR_NUMBERS)
    page.close()
    assert shown
    assert all(number <= room for number, room in shown)


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page about games on networks of 6, 13 and 64 hosts."""
    root = tmp_path_factory.mktemp("networks")
    run = run_folders.with_scenarios(root / "run", sample("tiny"), CAGE2, sample("wide64"))
    write_report([run], root / "report.html")
    return root / "report.html"


@pytest.mark.parametrize("width", WIDTHS)
def test_a_replay_draws_the_network_of_each_game(
    browser: Browser, networks: Path, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    watched = Watched(page, networks)
    for game, (hosts, subnets) in enumerate([(6, 3), (13, 3), (64, 3)]):
        page.select_option("#game", str(game))
        page.locator("#slider").fill("20")
        drawing = page.locator("#drawing svg")
        expect(drawing).to_have_attribute(
            "aria-label", f"Drawing of {hosts} hosts in {subnets} subnets"
        )
        assert page.locator("#drawing [data-host]").count() == hosts
        assert page.locator("#drawing .tag").count() >= 2
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
    assert watched.complaints == []
