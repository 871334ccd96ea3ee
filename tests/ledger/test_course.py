"""How a book went, as its page draws it: expected, final and missing after each moment."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger.books import open_book, post
from ledger.models import Account, Reconciliation
from ledger.posting import Line, Posting
from ledger.reconcile import AccountRow, EntryRow
from ledger.reconcile.course import Course, course
from ledger.reconcile_stored import books_of, course_of
from tests.ledger.test_admin import user

START = datetime(2026, 1, 1, tzinfo=UTC)


def entry(seq: int, before: int, amount: int, after: float) -> EntryRow:
    at = START + timedelta(seconds=after)
    return EntryRow(uuid4(), f"k{seq}", amount, before, before + amount, None, "w", at, at, seq)


def of(*entries: EntryRow, opening: int = 100) -> list[tuple[AccountRow, list[EntryRow]]]:
    return [(AccountRow("A", opening, 0, 0, None), list(entries))]


def test_what_a_write_overwrites_is_missing_from_then_on():
    went = course(of(entry(1, 100, 10, 0), entry(2, 100, 20, 1), entry(3, 120, 5, 2)))
    assert (went[0].expected, went[0].final) == (100, 100)
    assert (went[-1].expected, went[-1].final, went[-1].missing) == (135, 125, 10)
    assert [each.missing for each in went] == sorted(each.missing for each in went)


def test_nothing_is_missing_from_a_chain_whatever_the_clocks_say():
    """The server's order counts: the second writer's clock may be behind."""
    went = course(of(entry(2, 110, 20, 0), entry(1, 100, 10, 1)))
    assert (went[-1].expected, went[-1].missing) == (130, 0)


def test_long_courses_are_gathered_and_no_posting_is_left_out():
    went = course(of(*(entry(number, number, 1, number * 0.1) for number in range(1000)), opening=0), 60)
    assert len(went) <= 61
    span = went[1].after
    assert round(sum(each.postings * span for each in went)) == 1000
    assert went[-1].final == 1000
    assert course(of()) == []


def test_a_book_with_too_many_entries_has_no_course_and_its_accounts_pass_by_all_the_same():
    went = Course(most_entries=1)
    entries = [entry(1, 100, 10, 0), entry(2, 110, 20, 1)]
    passed = [(account, list(rows)) for account, rows in went.passing([*of(*entries), *of(*entries)])]
    assert [rows for _, rows in passed] == [entries, entries]
    assert went.moments() == []


@pytest.mark.usefixtures("committed_db")
class TestPages:
    def test_a_books_page_draws_what_is_missing(self):
        book = open_book("no-lock", [("A1", 100, None)])
        page = f"/admin/ledger/book/{book.pk}/change/"
        root = user("ledger.view_book")
        assert "pygal-chart" not in root.get(page).content.decode()  # nothing was posted
        post(book, Posting("k1", (Line("A1", 5),)))
        told = root.get(page).content.decode()
        assert "105 minor units were expected, the balances held 105" in told
        assert ">missing<" not in told
        Account.objects.filter(book=book).update(balance=100, version=0, head=None)  # as if B had read before
        post(book, Posting("k2", (Line("A1", 7),)))
        with CaptureQueriesContext(connection) as asked:
            told = root.get(page).content.decode()
        assert (
            sum('FROM "ledger_entry"' in each["sql"] for each in asked) == 1
        )  # reconciled and drawn in one pass
        assert "112 minor units were expected, the balances held 107, 5 were missing" in told
        assert ">missing<" in told
        drawing = re.search(r"<svg.*?</svg>", told, re.DOTALL)
        assert drawing
        assert not re.search(r"<style|<script| style=| id=", drawing[0])

    def test_the_list_says_what_reconcile_found_without_reading_the_books(self):
        book = open_book("no-lock", [("A1", 100, None)], name=f"course {uuid4()}")
        root, page = user("ledger.view_book"), f"/admin/ledger/book/?q={book.name}"
        assert "not reconciled yet" in root.get(page).content.decode()
        post(book, Posting("k1", (Line("A1", 5),)))
        Account.objects.filter(book=book).update(balance=100, version=0, head=None)
        post(book, Posting("k2", (Line("A1", 7),)))
        books_of(book)
        told = root.get(page).content.decode()
        assert '<span class="word lost">lost</span> 5 minor units at' in told
        assert Reconciliation.objects.get(book=book).final == 107
        assert course_of(book)[-1].missing == 5

    def test_a_longer_list_asks_no_more(self):
        mark = str(uuid4())
        root, counts = user("ledger.view_book"), []
        for _ in range(2):
            for _ in range(3):
                books_of(open_book("no-lock", [("A1", 1, None)], name=mark))
            with CaptureQueriesContext(
                connection,
            ) as asked:
                assert root.get(f"/admin/ledger/book/?q={mark}").content.decode().count("nothing posted") >= 3
            counts.append(len(asked))
        assert counts[0] == counts[1]
