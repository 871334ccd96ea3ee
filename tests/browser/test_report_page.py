"""The report and a page to step through, on a phone and in dark mode, with unexpected names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import AUDIT
from tests.loadtest.report.test_explorer import explored
from tests.loadtest.report.test_report import result, write

LOCK = f"my_package.with_modules:{'a_lock_with_a_long_name_' * 8}"[:200]
SCREENS = {"phone": (390, "light"), "phone in the dark": (390, "dark"), "wide": (1280, "light")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = {"verdict": "kept", "lost_amount": 0, "first_loss": None}
    folder = tmp_path_factory.mktemp("report")
    few = result("no-lock", expected=3_000_000, final=10, workload="deposits")
    write(folder, few, result(LOCK, **kept, workload="deposits"), result("حساب", **kept, workload="stock"))
    return explored(folder, strategy=LOCK)


@pytest.fixture(params=SCREENS)
def page(request: pytest.FixtureRequest, folder: Path, chromium: Browser) -> Iterator[Page]:
    width, scheme = SCREENS[request.param]
    context = chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    tab = context.new_page()
    tab.set_default_timeout(20_000)
    tab.goto((folder / "index.html").as_uri())
    yield tab
    context.close()


@pytest.mark.deep_after(1)
def test_the_report_is_accessible(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert page.evaluate(AUDIT) == []
    names = page.locator("svg.pygal-chart > title").all_text_contents()
    assert "no-lock 10 of 3,000,000" in names[0]  # what the chart shows, in words


@pytest.mark.deep
def test_a_page_to_step_through_is_accessible(page: Page, folder: Path) -> None:
    page.goto(next(folder.glob("explore/*.html")).as_uri())
    page.keyboard.press("ArrowRight")
    assert page.evaluate(AUDIT) == []


@pytest.mark.deep
def test_the_keyboard_finds_every_part_of_the_report(page: Page) -> None:
    page.keyboard.press("Tab")
    first = page.locator(".contents a").first
    expect(first).to_be_focused()
    assert first.evaluate("(link) => getComputedStyle(link).outlineStyle") == "solid"
    for link in page.locator('.contents a[href^="#"]').all():
        assert page.locator(link.get_attribute("href") or "").count() == 1


@pytest.mark.deep
def test_a_name_stays_in_sight_when_its_row_is_scrolled(page: Page) -> None:
    table = page.locator("#deposits .scroll").first
    table.evaluate("(region) => (region.scrollLeft = 300)")
    edge = table.evaluate("(region) => region.getBoundingClientRect().left")
    left = table.locator("tbody th").first.evaluate("(name) => name.getBoundingClientRect().left")
    assert left >= edge - 1


@pytest.mark.deep_after(1)
def test_a_long_name_leaves_room_for_the_bars_and_a_short_bar_for_its_value(page: Page) -> None:
    chart = page.locator("svg.pygal-chart").first
    widest = chart.evaluate(
        "(svg) => Math.max(...[...svg.querySelectorAll('rect.rect')].map((bar) => bar.getBBox().width))"
    )
    assert widest > 300  # of 760
    value = chart.locator(".text-overlay text", has_text="10, loses")
    assert value.evaluate("(text) => getComputedStyle(text).fill") == "rgb(11, 11, 11)"  # not white on white
    assert value.evaluate("(text) => text.getBBox().x") > 0  # behind the bar, not over the names
