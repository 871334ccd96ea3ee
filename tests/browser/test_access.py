"""The admin on a phone, by keyboard alone and by screen reader, with unexpected names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from ledger.books import open_book, post
from ledger.models import Account, Book
from ledger.posting import Line, Posting
from loadtest.models import Result, Trial
from tests.browser.conftest import (
    AUDIT,
    DARK_PHONE,
    DARK_WIDE,
    PHONE,
    WIDE,
    database,
    problems,
    watched,
)
from tests.site.conftest import one_row_of_each
from tests.site.rows import ROWS
from tests.site.visitor import address

LOCK = f"my_package.with_modules:{'a_lock_with_a_long_name_' * 8}"[:200]
NAMES = ["W" * 200, "<b>bold</b><img src=x onerror=alert(1)>", "حساب البيع بالتجزئة", ""]
#: addresses of the admin that are no page of their own: files, parts of pages, redirects, and what nothing links to
NO_PAGE = re.compile(
    r"\.csv$|\.<str:kind>$|/progress/$|/results/$|/history/$|/delete/$|login|logout|jsi18n|autocomplete|search"
)


@pytest.fixture(scope="module", autouse=True)
def pages(django_db_setup: None, django_db_blocker: Any) -> Iterator[dict[str, str]]:
    """name → address of a page that shows awkward rows."""
    with database(django_db_blocker):
        books = [open_book("no-lock", [("N" * 40, 100, None)], name=name) for name in NAMES]
        more = [open_book("no-lock", [("A", 100, None)]).pk for _ in range(100)]  # than one page of the list
        post(books[0], Posting("k", (Line("N" * 40, 1),)))
        Account.objects.filter(book=books[0]).update(head=None)  # as if it had been overwritten
        done = Trial.objects.create(command="compare", workload="deposits", store="postgres")
        data = {"worst_account": "N" * 40, "cause": "because " * 30, "verdict": "lost"}
        data |= {"ops_per_s": 12.3, "lost_amount": 10**12, "latency_ms": {}, "under": {"pause": "lost"}}
        of_lock = Result.objects.create(trial=done, strategy=LOCK, verdict="lost", data=data)
        running = Trial.objects.create(command="import", workload="imports", store="postgres")
        Result.objects.create(trial=running, strategy="no-lock", verdict="lost", data=data)
    yield {
        "book": f"ledger/book/{books[0].pk}/change/",
        "untouched book": f"ledger/book/{books[1].pk}/change/",
        "losses": f"ledger/book/{books[0].pk}/accounts/{'N' * 40}/losses/",
        "trial": f"loadtest/trial/{done.pk}/change/",
        "running": f"loadtest/trial/{running.pk}/change/",
        "result": f"loadtest/result/{of_lock.pk}/change/",
        "compared": f"loadtest/trial/compared/{done.pk}/{running.pk}/",
        "nothing found": "ledger/book/?q=nothing-is-called-so",
        "no page": "nothing/",
    }
    with database(django_db_blocker):
        Book.objects.filter(pk__in=more).delete()


@pytest.fixture(scope="module")
def every_page(pages: dict[str, str], django_db_blocker: Any) -> list[str]:
    """The addresses of all pages of the admin, with one row of each model."""
    with database(django_db_blocker):
        rows = one_row_of_each()
        return [
            address(route, rows)
            for route, (get, _) in ROWS.items()
            if route.startswith("admin/") and get[1] == 200 and not NO_PAGE.search(route)
        ]


@pytest.fixture
def phone(lab: tuple[str, str], chromium: Browser, cookies: StorageState) -> Iterator[Page]:
    with watched(chromium, lab[0], storage_state=cookies) as tab:
        tab.set_viewport_size({"width": 390, "height": 844})
        yield tab


def problems_of(page: Page, addresses: dict[str, str], *screens: tuple[int, str]) -> list[str]:
    found = []
    for name, path in addresses.items():
        page.goto(path)
        expect(page.locator("#content[tabindex], body.alone")).to_be_attached()  # shell.js has done its work
        found += [f"{name}: {each}" for each in problems(page, *screens)]
    page.complaints[:] = [each for each in page.complaints if "404" not in each]  # type: ignore[attr-defined]
    return found


@pytest.mark.deep(short=False)
def test_awkward_rows_are_accessible(page: Page, pages: dict[str, str]) -> None:
    addresses = {name: f"/admin/{path}" for name, path in pages.items()}
    assert not problems_of(page, addresses, PHONE, DARK_WIDE)


@pytest.mark.deep(short=False)
@pytest.mark.parametrize(
    "screens",
    [
        pytest.param((DARK_PHONE, PHONE), id="phone"),
        pytest.param((WIDE, DARK_WIDE), id="wide"),
    ],
)
def test_every_page_is_accessible(
    page: Page, every_page: list[str], screens: tuple[tuple[int, str], ...]
) -> None:
    """Every other page in the dark, the rest by day. Nothing is blocked by the policy, and no other host is asked
    (`watched`; the policy's own words: tests/site)."""
    assert len(every_page) > 40
    for odd, screen in enumerate(screens):
        assert not problems_of(page, {each: each for each in every_page[odd::2]}, screen)


@pytest.mark.deep
def test_a_colour_that_is_on_its_way_is_looked_at_where_it_arrives(page: Page) -> None:
    """As those of the theme are for a moment: half way they have little contrast."""
    page.goto("/admin/ledger/book/", wait_until="networkidle")
    page.evaluate("document.body.animate([{ opacity: 0.2 }, { opacity: 1 }], { duration: 1e6 })")
    assert not page.evaluate(AUDIT)
    page.evaluate(
        "document.body.animate([{ opacity: 1 }, { opacity: 0.2 }], { duration: 1, fill: 'forwards' }).finish()"
    )
    assert any("contrast" in each for each in page.evaluate(AUDIT))


@pytest.mark.deep
def test_the_navigation_can_be_skipped_and_log_out_reached_by_keyboard(page: Page) -> None:
    page.goto("/admin/ledger/importrun/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
    page.keyboard.press("Tab")
    filters = page.get_by_role("button", name="Filters")
    expect(filters).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#changelist-filter a").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#changelist-filter")).to_be_hidden()
    expect(filters).to_be_focused()
    menu = page.locator("[x-on\\:click='openUserLinks = !openUserLinks']")
    menu.focus()
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Light")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Log out")).to_be_hidden()
    expect(menu).to_be_focused()


def test_the_navigation_of_a_phone_opens_and_closes_by_keyboard(phone: Page) -> None:
    phone.goto("/admin/")
    button = phone.get_by_role("button", name="Navigation")
    expect(button).to_have_attribute("aria-expanded", "false")
    button.press("Enter")
    expect(phone.locator("#nav-sidebar :focus")).to_be_visible()
    phone.keyboard.press("Escape")
    expect(phone.locator("#nav-sidebar")).to_be_hidden()
    expect(button).to_be_focused()


@pytest.mark.deep
def test_a_refreshed_page_keeps_scroll_and_focus_and_is_announced(phone: Page, pages: dict[str, str]) -> None:
    phone.goto(f"/admin/{pages['running']}")
    phone.locator("#verdicts").evaluate("(table) => table.scrollLeft = 120")
    phone.get_by_role("button", name="Stop").focus()
    phone.evaluate("document.querySelector('#results').dataset.old = 'yes'")
    expect(phone.locator("#results")).not_to_have_attribute("data-old", "yes")  # htmx brought another
    expect(phone.get_by_role("status").filter(has_text="No lock: lost.")).to_be_attached()
    assert phone.locator("#verdicts").evaluate("(table) => table.scrollLeft") == 120
    expect(phone.get_by_role("button", name="Stop")).to_be_focused()
