"""A counterexample's page, opened as a file: forward and back by button, key, slider and click; and without script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.loadtest.report.test_explorer import explored
from tests.lost_update_lab.telling.test_picture import STEPS

LAST = len(STEPS) + 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return explored(tmp_path_factory.mktemp("report"))


@pytest.fixture(params=[1200, 390], ids=["wide", "narrow"])
def page(request: pytest.FixtureRequest, folder: Path, chromium: Browser) -> Iterator[Page]:
    """The page, reached from the report as a reader does."""
    complaints: list[str] = []
    context = chromium.new_context(viewport={"width": request.param, "height": 800})
    tab = context.new_page()
    tab.set_default_timeout(20_000)
    tab.on("console", lambda said: complaints.append(said.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto((folder / "index.html").as_uri())
    tab.locator("td a.lost").click()
    expect(tab.locator(".example :target")).to_be_visible()  # the link opened what it leads to
    tab.get_by_role("link", name="Step through it").click()
    yield tab
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
    assert complaints == []


@pytest.mark.deep
def test_forward_and_back(page: Page) -> None:
    where, now = page.locator("#where"), page.locator("#now")
    expect(where).to_have_text(f"0 / {LAST}")
    page.get_by_role("button", name="forward").click()
    expect(now).to_contain_text("5 s left")
    expect(now.locator(".money")).to_have_text("100")
    page.keyboard.press("End")
    expect(where).to_have_text(f"{LAST} / {LAST}")
    expect(now.locator(".money")).to_have_text("120")
    page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="back").click()
    expect(where).to_have_text(f"{LAST - 2} / {LAST}")
    page.locator("#slider").fill("2")
    expect(now).to_contain_text("B waits")
    page.locator(".step").nth(5).click()
    expect(page.locator(".step[aria-current=step]")).to_have_id("step-5")
    page.reload()
    expect(where).to_have_text(f"5 / {LAST}")  # a link to a step leads there
    page.keyboard.press("Home")
    expect(where).to_have_text(f"0 / {LAST}")


def test_without_a_script_every_step_can_be_read(folder: Path, chromium: Browser) -> None:
    context = chromium.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(next(folder.glob("explore/*.html")).as_uri())
    expect(tab.locator(".step .after")).to_have_count(LAST + 1)
    assert all(each.is_visible() for each in tab.locator(".step .after").all())
    expect(tab.locator("#controls")).to_be_hidden()
    context.close()
