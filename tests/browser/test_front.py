"""The front page for a first-time visitor: on a phone, in dark mode, by keyboard, without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from loadtest.models import Trial
from tests.browser.conftest import DARK_PHONE, WIDE, database, problems, watched

ADDRESSES = (
    "/",
    "/?f_withstands=crash-pause&work=slow&store=postgres&callers=many&survive=failover",
    "/?f_text=nothing",
    "/strategies/token/",
    "/docs/",
    "/docs/tour/README.md",
    "/docs/scale.md",
)


@pytest.fixture(scope="module", autouse=True)
def nobody_else(django_db_setup: None, django_db_blocker: Any) -> None:
    with database(django_db_blocker):
        Trial.objects.filter(command="experiment").delete()


@pytest.fixture
def visitor(lab: tuple[str, str], chromium: Browser) -> Iterator[Page]:
    """A visitor without a login."""
    with watched(chromium, lab[0]) as tab:
        yield tab


@pytest.mark.deep(short=False)
def test_the_page_is_accessible(visitor: Page) -> None:
    found = []
    for address in ADDRESSES:
        visitor.goto(address)
        found += [f"{address}: {each}" for each in problems(visitor, DARK_PHONE, WIDE)]
    assert found == []


def test_a_visitor_sees_money_lost_and_then_kept(visitor: Page) -> None:
    visitor.goto("/")
    visitor.get_by_label("Strategy", exact=True).select_option("select-for-update")
    visitor.get_by_role("button", name="Run 10 workers").press("Enter")
    sides = visitor.locator(".side")
    expect(sides.nth(0)).to_have_class("side loses")
    expect(sides.nth(1)).to_have_class("side keeps")
    expect(sides.nth(1).locator(".count b")).to_have_text("10")
    expect(sides.nth(0).locator(".cells .lost").first).to_be_visible()
    expect(visitor.get_by_role("status")).to_contain_text("lost")
    expect(visitor.get_by_role("button", name="Run it again")).to_be_focused()


def test_a_field_opens_its_smallest_schedule_and_the_questions_recommend(visitor: Page) -> None:
    visitor.goto("/?f_text=token#evidence")
    visitor.get_by_role("link", name="pause: lost").first.click()
    expect(visitor.locator(":target")).to_contain_text("explore --replay token/l/")
    visitor.goto("/#choose")
    for label in ("The business decides, in milliseconds", "In PostgreSQL", "A few", "A caller that dies"):
        visitor.get_by_label(label).check()
    visitor.get_by_role("button", name="Recommend one").click()
    expect(visitor.get_by_role("region", name="Recommendation")).to_contain_text("select-for-update")


@pytest.mark.deep
def test_without_a_script_the_form_leads_to_the_run(lab: tuple[str, str], chromium: Browser) -> None:
    with watched(chromium, lab[0], java_script_enabled=False) as tab:
        tab.goto("/")
        tab.get_by_role("button", name="Run 10 workers").click()
        tab.wait_for_url("**/?run=*")
        expect(tab.locator(".side")).to_have_count(2)
