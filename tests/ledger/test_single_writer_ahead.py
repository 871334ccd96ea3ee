"""The group that the owner computes while the one before is on its way: written after it, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection, connections

from ledger.books import open_book
from ledger.models import Book, BookOwner, Entry
from ledger.posting import Line, Posting
from ledger.reconcile_stored import books_of
from ledger.writer import Owner
from ledger.writer.owner import ENOUGH, GROUP
from tests.ledger.owners import LONG, Caller, begun, candidates, committed, end_lease, heard, opened

pytestmark = pytest.mark.usefixtures("committed_db")


book = pytest.fixture(opened)
owners = pytest.fixture(candidates)


@contextmanager
def held(book: Book) -> Iterator[psycopg.Connection[Any]]:
    """No group gets past the accounts inside the block. Yields another session: the owner's is busy."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as other:
        other.execute("SELECT FROM ledger_account WHERE book_id = %s FOR UPDATE", [book.pk])
        yield other


def window(account: str, number: int = ENOUGH) -> list[Posting]:
    return [Posting(f"{account}{n}", (Line(account, 1),)) for n in range(number)]


def one_and_a_window(book: Book, owner: Owner) -> tuple[Caller, Caller]:
    one = Caller(book, Posting("one", (Line("A", 10),)))
    heard(owner, 1)
    many = Caller(book, *window("A"))
    heard(owner, 2)
    return one, many


def begun_with_the_first(owner: Owner) -> None:
    """What else was asked comes while that group is on its way."""
    assert owner.clients is not None
    asked = owner.clients.asked
    others = [asked.pop() for _ in range(len(asked) - 1)]
    begun(owner)
    asked.extend(reversed(others))
    owner.prepare()


def balances(owner: Owner, *callers: Caller) -> list[list[int]]:
    return [each.balances for caller in callers for each in caller.served_by(owner)]


def test_it_is_computed_meanwhile_and_sent_as_soon_as_the_one_before_is_written(
    book: Book, owners: tuple[Owner, Owner]
) -> None:
    owner, _ = owners
    owner.take_over()
    with held(book) as other:
        first = Caller(book, Posting("first", (Line("A", 10),)))
        heard(owner)
        begun(owner)
        others = Caller(book, *window("A"))
        while owner.ahead.size < ENOUGH:
            owner.serve(5)
        assert owner.group is not None
        assert owner.group.size == 1
        written = "SELECT FROM ledger_entry WHERE book_id = %s"
        assert other.execute(written, [book.pk]).rowcount == 0
    while owner.group.size == 1:
        owner.hear(5)
    assert (owner.group.size, owner.ahead.size) == (ENOUGH, 0)
    assert balances(owner, first, others) == [[110], *([111 + n] for n in range(ENOUGH))]
    books = books_of(book)
    assert (books.final, books.entries, books.balanced) == (110 + ENOUGH, 1 + ENOUGH, True)


def test_it_is_not_sent_when_the_one_before_it_was_not_written(
    book: Book, owners: tuple[Owner, Owner]
) -> None:
    first, second = owners
    first.take_over()
    one, many = one_and_a_window(book, first)
    end_lease(book)
    assert second.take_over()
    begun_with_the_first(first)
    assert (first.group and first.group.size, first.ahead.size) == (1, ENOUGH)
    while first.fence is not None:
        first.hear(5)
    assert (first.group, first.ahead.size) == (None, 0)
    assert not Entry.objects.filter(book=book).exists()
    after = [balance for (balance,) in balances(second, one, many)]
    assert after in (
        [110, *range(111, 111 + ENOUGH)],
        [110 + ENOUGH, *range(101, 101 + ENOUGH)],
    )  # the first to come
    assert (books_of(book).final, books_of(book).entries) == (110 + ENOUGH, 1 + ENOUGH)


def test_it_is_computed_again_when_the_one_before_it_was_in_the_books_already(
    book: Book, owners: tuple[Owner, Owner]
) -> None:
    first, second = owners
    first.take_over()
    known = Caller(book, Posting("known", (Line("A", 10),)))
    heard(first)
    begun(first)
    assert committed(first) == 1
    end_lease(book)
    assert second.take_over()  # before the caller's own process looks for an owner
    first.let_go()  # it dies before it answers
    heard(second, 1)
    many = Caller(book, *window("A"))
    heard(second, 2)
    begun_with_the_first(second)
    assert second.ahead.answers[0][0] == [
        121
    ]  # on top of 10 that are in the books, and once more in the group
    assert balances(second, known, many) == [[110], *([111 + n] for n in range(ENOUGH))]
    assert (books_of(book).final, books_of(book).entries) == (110 + ENOUGH, 1 + ENOUGH)


def test_an_order_for_an_account_that_has_to_be_read_waits_and_so_does_what_came_after_it(
    book: Book, owners: tuple[Owner, Owner]
) -> None:
    owner, _ = owners
    owner.take_over()
    callers = []
    for n, account in enumerate("ABA", 1):
        callers.append(Caller(book, Posting(f"k{n}", (Line(account, n),))))
        heard(owner, n)
    begun_with_the_first(owner)
    assert owner.clients is not None
    assert (owner.ahead.size, len(owner.clients.asked)) == (0, 2)
    assert balances(owner, *callers) == [[101], [2], [104]]


def test_it_does_not_grow_beyond_a_group(book: Book, owners: tuple[Owner, Owner]) -> None:
    owner, _ = owners
    owner.take_over()
    callers = []
    for n, size in enumerate((1, 1, GROUP, 1), 1):
        callers.append(Caller(book, *(Posting(f"{n}-{k}", (Line("A", 1),)) for k in range(size))))
        heard(owner, n)
    begun_with_the_first(owner)
    assert owner.clients is not None
    assert (owner.ahead.size, len(owner.clients.asked)) == (1, 2)
    assert [len(caller.served_by(owner)) for caller in callers] == [1, 1, GROUP, 1]
    assert books_of(book).final == 100 + GROUP + 3


def test_an_owner_that_is_stopped_begins_no_further_group(book: Book, owners: tuple[Owner, Owner]) -> None:
    """The next owner of the book, here the callers' own candidate, answers what was not sent."""
    owner, _ = owners
    owner.take_over()
    one, many = one_and_a_window(book, owner)
    begun_with_the_first(owner)
    owner.stop.set()
    owner.run()
    for caller in (one, many):
        caller.join(20)
    assert [each.balances for each in one.answers + many.answers] == [
        [110],
        *([111 + n] for n in range(ENOUGH)),
    ]
    assert BookOwner.objects.get(book=book).fence == 2
    assert books_of(book).entries == 1 + ENOUGH


def test_the_server_does_not_plan_each_group_again() -> None:
    """It knows what one account costs, and would plan for ever if it saw that there is one in each group."""
    book = open_book("single-writer", [(f"A{n}", 0, None) for n in range(2000)])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE ledger_account")
    connections.close_all()  # the statement is prepared again
    owner = Owner(book, LONG)
    owner.take_over()
    for n in range(8):
        assert balances(owner, Caller(book, Posting(f"k{n}", (Line("A0", 1),)))) == [[n + 1]]
    with connection.cursor() as cursor:
        cursor.execute("SELECT custom_plans FROM pg_prepared_statements WHERE name = 'ledger_group'")
        assert cursor.fetchone() == (5,)
    owner.let_go()
