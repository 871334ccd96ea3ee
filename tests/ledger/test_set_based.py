"""Set-based posting: the same books as line by line, keys once, floors kept, nothing half."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, connections, transaction
from django.db.migrations.executor import MigrationExecutor

from ledger.books import KeyReused, open_book, post
from ledger.imports.dealing import BulkLine
from ledger.imports.set_based import Posted, post_lines
from ledger.models import Account, Book, Entry
from ledger.models.sequence import STEP
from ledger.posting import Line, Posting, Refused
from ledger.reconcile_stored import books_of
from ledger.stores import KeyTaken
from tests.ledger.race.sessions import session_of, waiting_for
from tests.locks.actor import eventually

pytestmark = pytest.mark.usefixtures("committed_db")
LINES = [BulkLine(f"k{n}", f"A{n % 3}", n - 4) for n in range(10)]


@pytest.fixture
def book() -> Book:
    return open_book(
        "select-for-update", [("A0", 100, None), ("A1", 100, 0), ("A2", 100, None), ('Ä"', 0, None)]
    )


def held(book: Book) -> dict[str, int]:
    return dict(Account.objects.filter(book=book).values_list("number", "balance"))


def test_it_leaves_the_same_books_as_line_by_line(book: Book) -> None:
    other = open_book("select-for-update", [("A0", 100, None), ("A1", 100, 0), ("A2", 100, None)])
    for line in LINES:
        post(other, Posting(line.key, (Line(line.account, line.amount),)))
    assert post_lines(book, LINES[:4]) == Posted(4, 0)
    assert post_lines(book, LINES[4:]) == Posted(6, 0)
    columns = ("key", "fingerprint", "amount", "balance_before", "balance_after", "account__number")
    ours, theirs = (
        list(Entry.objects.filter(book=each).order_by("seq").values_list(*columns)) for each in (book, other)
    )
    assert sorted(ours) == sorted(theirs)
    assert books_of(book).right
    versions = Account.objects.filter(book=book, number="A0").values_list("version", flat=True)
    assert list(versions) == list(
        Account.objects.filter(book=other, number="A0").values_list("version", flat=True)
    )


def test_a_key_that_came_before_is_left_out(book: Book) -> None:
    post(book, Posting("k1", (Line("A1", -3),)))
    post(book, Posting("ü", (Line('Ä"', 5),)))
    assert post_lines(book, [*LINES, BulkLine("ü", 'Ä"', 5)]) == Posted(9, 2)
    assert post_lines(book, LINES) == Posted(0, 10)
    assert books_of(book).right


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (BulkLine("k1", "A1", 7), KeyReused),
        (BulkLine("k1", "A2", -3), KeyReused),
        (BulkLine("x", "A1", -500), Refused),
        (BulkLine("x", "A9", 1), Refused),
        (BulkLine("x", "A0", 2**63 - 1), Refused),
        (BulkLine("k0", "A0", -4), KeyTaken),
        (BulkLine("k0", "A1", 4), KeyTaken),
    ],
)
def test_one_wrong_line_refuses_its_chunk(book: Book, line: BulkLine, error: type[Exception]) -> None:
    post_lines(book, [LINES[1]])
    before = held(book)
    with pytest.raises(error):
        post_lines(book, [LINES[0], line])
    assert held(book) == before
    assert books_of(book).right


def test_the_control_sees_a_wrong_parent(book: Book) -> None:
    post_lines(book, LINES)
    Account.objects.filter(book=book, number="A0").update(head=Entry.objects.filter(book=book).first().pk)
    assert not books_of(book).right


def test_it_waits_for_who_holds_an_account_and_reads_afterwards(book: Book) -> None:
    done: list[Posted] = []

    def chunk() -> None:
        done.append(post_lines(book, LINES))
        connections.close_all()

    with transaction.atomic():
        post(book, Posting("first", (Line("A1", 50),)))
        thread = threading.Thread(target=chunk)
        thread.start()
        eventually(lambda: waiting_for(session_of(connection)) or done, "the chunk waits")
        assert not done
    thread.join()
    assert done == [Posted(10, 0)]
    assert books_of(book).right
    assert held(book)["A1"] == 150 + sum(line.amount for line in LINES if line.account == "A1")


def test_keys_are_ordered_by_their_bytes_whatever_the_database_s_language() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT collation_name FROM information_schema.columns"
            " WHERE table_name = 'ledger_entry' AND column_name = 'key'"
        )
        assert cursor.fetchone() == ("C",)


def chain_of(book: Book) -> list[tuple[str, int]]:
    """A0's entries from the first one on, along their parents: key and number."""
    entries = Entry.objects.filter(book=book, account__number="A0").values_list("id", "parent", "key", "seq")
    above = {parent: (ident, key, seq) for ident, parent, key, seq in entries}
    found, head = [], None
    while head in above:
        head, key, seq = above[head]
        found.append((key, seq))
    assert len(found) == len(above)
    return found


def test_the_numbers_follow_the_order_of_writes(book: Book) -> None:
    """The lines of a load have numbers of several blocks; writers before and after draw theirs by INSERT."""
    many = [BulkLine(f"k{n}", "A0" if n % 3 else "A2", 1) for n in range(2 * STEP + 5)]
    post(book, Posting("first", (Line("A0", 1),)))
    post_lines(book, many)
    post(book, Posting("between", (Line("A0", 1),)))
    post_lines(book, [BulkLine("short", "A0", 1)])
    post(book, Posting("last", (Line("A0", 1),)))
    chain = chain_of(book)
    assert [key for key, _ in chain] == [
        "first",
        *(line.key for line in many if line.account == "A0"),
        *("between", "short", "last"),
    ]
    numbers = [seq for _, seq in chain]
    assert numbers == sorted(set(numbers))
    assert Entry.objects.filter(book=book).values("seq").distinct().count() == len(many) + 4


def test_the_numbers_go_on_behind_a_load_when_the_migration_is_undone(book: Book) -> None:
    """Backwards each draw is one number again: not one of those that the load's last block took."""
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes("ledger")
    post(book, Posting("first", (Line("A0", 1),)))
    post_lines(book, [BulkLine(f"k{n}", "A0", 1) for n in range(10)])
    try:
        MigrationExecutor(connection).migrate([("ledger", "0015_keys_in_byte_order")])
        post(book, Posting("before", (Line("A0", 1),)))
        post(book, Posting("next", (Line("A0", 1),)))
    finally:
        MigrationExecutor(connection).migrate(newest)
    post_lines(book, [BulkLine(f"n{n}", "A0", 1) for n in range(10)])
    post(book, Posting("last", (Line("A0", 1),)))
    numbers = [seq for _, seq in chain_of(book)]
    assert numbers == sorted(set(numbers))
    assert numbers[12] == numbers[11] + 1


#: in the order of a language, "Z" comes after "a" and "é" before "f"
@pytest.mark.parametrize(
    ("came", "chunk"), [("Z", "Ya"), ("é", "eü"), ("b", "aZ"), ("\U0001f600", "z\uffff")]
)
def test_a_known_key_is_found_between_any_two(book: Book, came: str, chunk: str) -> None:
    post_lines(book, [BulkLine(came, "A0", 1)])
    lines = [BulkLine(key, "A0", 1) for key in (*chunk, came)]
    assert post_lines(book, lines) == Posted(2, 1)
    assert post_lines(book, lines) == Posted(0, 3)
