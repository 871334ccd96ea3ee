"""From the admin: an exploration and a fault cell are started, and their words are read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from loadtest.servers.background import BackgroundWorker
from tests.browser.conftest import AUDIT

LONG = 180_000  # ms; the machine may be busy


@pytest.fixture(scope="module")
def worker(lab: tuple[str, str]) -> Iterator[None]:
    with BackgroundWorker(number=1):
        yield


def chosen(page: Page, slug: str) -> None:
    page.get_by_role("button", name="Select none").click()
    page.get_by_label("Filter", exact=True).fill(slug)
    page.check(f"input[name=strategies][value={slug}]")


def test_strategies_are_chosen_by_keyboard_by_filter_and_by_kind(page: Page) -> None:
    page.goto("/admin/loadtest/trial/explore/")
    count, kinds = page.locator("[data-choose-count]"), page.locator("details.kind")
    expect(count).to_have_text("2 chosen (at most 40): setnx, token")
    page.get_by_role("button", name="Select none").press("Enter")
    expect(count).to_have_text("0 chosen (at most 40)")

    page.get_by_label("Filter", exact=True).press_sequentially("fenc")
    page.keyboard.press("Enter")  # sends nothing
    shown = page.locator(".choices label:visible").count()
    assert 1 < shown < 10
    page.get_by_label("Filter", exact=True).fill("")
    expect(page.locator("details.kind[open]")).to_have_count(1)

    kind = kinds.filter(has_text="A lock that is a row")
    kind.locator("summary").press("Enter")
    kind.get_by_role("button", name="Select all of this kind").press("Enter")
    expect(count).to_contain_text("5 chosen")
    expect(page.locator("#estimate")).to_contain_text("5 runs")
    page.get_by_label("Filter", exact=True).fill("nothing is called so")
    expect(page.get_by_text("No strategy has this in its name")).to_be_visible()


@pytest.mark.deep(short=False)
@pytest.mark.usefixtures("worker")
def test_an_exploration_is_started_and_its_words_are_read(page: Page) -> None:
    page.goto("/admin/")
    page.locator("#content").get_by_role("link", name="Explore every order").click()
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


@pytest.mark.deep
@pytest.mark.usefixtures("worker")
def test_a_fault_cell_is_started_and_its_word_is_read(page: Page) -> None:
    page.goto("/admin/loadtest/trial/faults/")
    chosen(page, "token")
    page.uncheck("input[name=hazards][value=crash-holding]")
    page.get_by_role("button", name="Inject faults").click()
    page.wait_for_url("**/trial/*/change/")
    expect(page.locator("#results > header .word")).to_have_text("finished", timeout=LONG)
    words = page.locator(".finding", has_text="token").locator(".words-of li", has_text="pause")
    expect(words.locator(".word")).to_have_text("lost")
