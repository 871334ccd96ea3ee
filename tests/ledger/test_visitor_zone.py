"""Times in the visitor's zone, which a cookie names, and in UTC without one."""

from __future__ import annotations

import pytest

from ledger.books import open_book
from ledger.http.visitor_zone import zone_of
from tests.ledger.test_admin import user

WRONG = (
    "",
    "Nowhere/Land",
    "../../etc/passwd",
    "/etc/passwd",
    "Europe",
    "x" * 5000,
    "a\x00b",
    "Europe/Berlin ",
)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_zone_is_utc(name):
    assert zone_of(name) is None


@pytest.mark.usefixtures("committed_db")
def test_a_time_is_shown_in_the_visitors_zone():
    book = open_book("no-lock", [("A1", 100, None)])
    root = user("ledger.view_book")
    page = f"/admin/ledger/book/{book.pk}/change/"
    assert (
        f'opened <span class="nowrap">{book.created:%Y-%m-%d %H:%M:%S} UTC' in root.get(page).content.decode()
    )
    root.cookies["zone"] = "Asia/Kathmandu"  # +05:45
    told = root.get(page).content.decode()
    here = book.created.astimezone(zone_of("Asia/Kathmandu"))
    assert f'opened <span class="nowrap">{here:%Y-%m-%d %H:%M:%S} +0545' in told
    root.cookies["zone"] = "Nowhere/Land"
    assert "UTC" in root.get(page).content.decode()
