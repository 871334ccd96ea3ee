"""From the admin: an exploration and a fault cell are started, and their words are read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from loadtest.servers.background import BackgroundWorker
from tests.browser.conftest import AUDIT

LONG = 180_000  # ms; the machine may be busy
pytestmark = pytest.mark.deep


@pytest.fixture(scope="module", autouse=True)
def worker(lab: tuple[str, str]) -> Iterator[None]:
    with BackgroundWorker(number=1):
        yield


def chosen(page: Page, slug: str) -> None:
    while (boxes := page.locator("input[name=strategies]:checked")).count():
        boxes.first.uncheck()
    page.check(f"input[name=strategies][value={slug}]")


def test_an_exploration_is_started_and_its_words_are_read(page: Page) -> None:
    page.goto("/admin/")
    page.get_by_role("link", name="Explore every order").click()
    chosen(page, "naive-lock")
    page.fill("#id_budget", "20")
    page.get_by_role("button", name="Explore every order").click()
    page.wait_for_url("**/trial/*/change/")
    expect(page.locator("#results > header .word")).to_have_text("finished", timeout=LONG)
    found = page.locator(".finding", has_text="naive-lock")
    expect(found.locator("h3 .word")).to_have_text("lost")
    found.get_by_text("The smallest schedule that breaks it").click()
    expect(found.locator(".told")).to_contain_text("lost")
    assert page.evaluate(AUDIT) == []


def test_a_fault_cell_is_started_and_its_word_is_read(page: Page) -> None:
    page.goto("/admin/loadtest/trial/faults/")
    chosen(page, "token")
    page.uncheck("input[name=hazards][value=crash-holding]")
    page.get_by_role("button", name="Inject faults").click()
    page.wait_for_url("**/trial/*/change/")
    expect(page.locator("#results > header .word")).to_have_text("finished", timeout=LONG)
    words = page.locator(".finding", has_text="token").locator(".words-of li", has_text="pause")
    expect(words.locator(".word")).to_have_text("lost")
