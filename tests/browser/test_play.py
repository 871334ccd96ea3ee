"""Playing: one level to its loss, step by step and by keyboard; every level to its end; the same as a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from loadtest.report import playable
from tests.browser.conftest import AUDIT, DARK_PHONE, WIDE, problems, watched


@pytest.fixture
def page(lab: tuple[str, str], chromium: Browser) -> Iterator[Page]:
    with watched(chromium, lab[0], reduced_motion="reduce") as tab:
        tab.goto("/play")
        expect(tab.locator("body[data-ready=no-lock]")).to_be_attached()
        yield tab


def move(page: Page, words: str) -> None:
    page.locator("#moves button", has_text=words).first.click()


@pytest.mark.deep
def test_a_level_is_played_to_its_loss(page: Page) -> None:
    move(page, "A reads the balance")
    move(page, "A begins a transaction")
    move(page, "B reads the balance")
    for _ in range(20):
        if page.locator("#end").is_visible():
            break
        page.locator("#moves button:not(.fault)").first.click()
    expect(page.locator("#end .word")).to_have_text("lost")
    expect(page.locator("#end")).to_contain_text("B and A both read 100. B wrote 120 (+20). A wrote 110")
    expect(page.get_by_role("link", name="Next level")).to_have_attribute("href", "#no-lock-3")
    expect(page.locator("#balance")).not_to_have_text("130")
    expect(page.locator("#tree .gone")).to_contain_text("overwritten by")
    expect(page.locator("#said")).to_contain_text("lost")

    address = page.url
    page.reload()
    expect(page.locator("#end .word")).to_have_text("lost")  # the address holds the position
    page.get_by_role("button", name="Step back").click()
    expect(page.locator("#end")).to_be_hidden()
    assert page.url != address


@pytest.mark.deep
def test_it_is_shown_how_a_level_loses_and_what_the_same_order_does_elsewhere(page: Page) -> None:
    page.get_by_role("button", name="Show me how it loses").click()
    expect(page.locator("#end .word")).to_have_text("lost")
    page.get_by_label("The same order under").select_option("select-for-update")
    expect(page.locator("#compared")).to_contain_text("Balance")
    expect(page.locator("#compared .word.lost")).to_have_count(0)


@pytest.mark.deep
def test_three_lanes_are_played_to_the_loss_of_two_by_keyboard(page: Page) -> None:
    page.locator("a[data-level=no-lock-3]").click()
    expect(page.locator("body[data-ready=no-lock-3]")).to_be_attached()
    expect(page.locator("#rules")).to_contain_text("A pays in 10, B pays in 20 and C pays in 30: 160")
    for who in "ABC":  # all three read before anybody writes
        read = page.locator("#moves button", has_text=f"{who} reads the balance")
        while not read.count():
            page.locator("#moves button").first.click()
        read.click()
    while page.locator("#end").is_hidden():
        page.keyboard.press("1")
    expect(page.locator("#end .word")).to_have_text("lost")
    expect(page.locator("#tree .gone")).to_have_count(2)
    expect(page.locator("#past .lane-C").first).to_be_visible()
    assert page.evaluate(AUDIT) == []


def test_the_keyboard_is_enough(page: Page) -> None:
    page.keyboard.press("1")
    expect(page.locator("#past li")).to_have_count(1)
    expect(page.locator("#moves button").first).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#past li")).to_have_count(0)


@pytest.mark.deep
def test_every_level_breaks_or_says_that_it_cannot_be_broken(page: Page) -> None:
    words = {}
    for name in playable.LEVELS:
        page.locator(f"a[data-level={name}]").click()
        expect(page.locator(f"body[data-ready={name}]")).to_be_attached()
        expect(page.locator("#moves button").first).not_to_contain_text(" sends ")  # a command without words
        page.get_by_role("button", name="Show me how it loses").click()
        never = page.locator("#hint", has_text="cannot be broken")
        told = page.locator("#end:visible .word").or_(never)
        expect(told).to_be_visible()
        words[name] = told.inner_text()
    schedules = f"{playable.schedules('fenced'):,}"
    assert words.pop("fenced").startswith(
        f"It cannot be broken within these bounds. All {schedules} orders were tried"
    )
    sound = ("select-for-update", "select-for-update-3", "optimistic-version")
    assert all(words.pop(name).startswith("It cannot be broken") for name in sound)
    assert {*words.values()} == {"lost"}


@pytest.mark.deep
def test_the_page_is_accessible(page: Page) -> None:
    page.get_by_role("button", name="Show me how it loses").click()
    expect(page.locator("#end .word")).to_have_text("lost")
    assert problems(page, DARK_PHONE, WIDE) == []


def test_the_reports_file_asks_nobody_and_plays(chromium: Browser, tmp_path: Path) -> None:
    path = playable.write(tmp_path)
    with watched(chromium, path.as_uri(), reduced_motion="reduce") as tab:
        tab.goto(path.as_uri())
        tab.get_by_role("button", name="Show me how it loses").click()
        expect(tab.locator("#end .word")).to_have_text("lost")
