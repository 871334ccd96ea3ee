"""A load by several sessions: the same books as by one, whole chunks, and no session left behind."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections, transaction

from ledger.books import KeyReused, open_book, post
from ledger.imports.dealing import BulkLine, Deal
from ledger.imports.set_based import Posted
from ledger.imports.side_by_side import Incomplete, _chunks, load_lines
from ledger.imports.turns import TURN, short_turns
from ledger.models import Book, Entry
from ledger.posting import Busy, Line, Posting, Refused
from ledger.reconcile_stored import books_of
from ledger.stores import KeyTaken
from tests.ledger.race.sessions import end_session, session_of, waiting_for
from tests.locks.actor import eventually

pytestmark = pytest.mark.usefixtures("committed_db")
#: A0, A2 and A1, A3 are the groups of two sessions
LINES = [BulkLine(f"k{n:03}", f"A{n % 4}", n + 1) for n in range(40)]
LOCK = "SELECT 1 FROM ledger_account WHERE book_id = %s AND number = %s FOR UPDATE"


@pytest.fixture
def book() -> Book:
    return open_book("select-for-update", [(f"A{n}", 0, 0) for n in range(4)])


@pytest.fixture(autouse=True)
def _no_session_stays(committed_db: None) -> Iterator[None]:
    before = sessions()
    yield
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("load-")]
    eventually(lambda: sessions() <= before, "the sessions of the load are closed")


@pytest.fixture
def other() -> Iterator[Any]:
    """Another program's session."""
    theirs = connection.copy()
    theirs.inc_thread_sharing()
    theirs.set_autocommit(False)
    yield theirs
    theirs.close()


def sessions() -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")
        return {pid for (pid,) in cursor.fetchall()}


def entries(book: Book, *columns: str) -> list[tuple[Any, ...]]:
    return list(Entry.objects.filter(book=book).order_by("account__number", "seq").values_list(*columns))


def there(book: Book) -> int:
    return Entry.objects.filter(book=book).count()


def beside(action: Callable[[], Any]) -> threading.Thread:
    def work() -> None:
        try:
            action()
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize(("many", "chunk"), [(1, 100), (2, 100), (2, 3), (3, 1), (9, 7)])
def test_it_leaves_the_same_books_as_line_by_line(book: Book, many: int, chunk: int) -> None:
    by_line = open_book("select-for-update", [(f"A{n}", 0, 0) for n in range(4)])
    for line in LINES:
        post(by_line, Posting(line.key, (Line(line.account, line.amount),)))
    assert load_lines(book, LINES, sessions=many, chunk=chunk) == Posted(40, 0)
    columns = ("account__number", "key", "fingerprint", "amount", "balance_before", "balance_after")
    assert entries(book, *columns) == entries(by_line, *columns)
    assert books_of(book).right


def test_all_lines_of_an_account_are_one_session_s(book: Book) -> None:
    load_lines(book, LINES, sessions=2, chunk=3)
    who = {number: {worker for _, worker in some} for number, some in by_account(book)}
    assert who["A0"] == who["A2"] != who["A1"] == who["A3"]
    assert all(len(names) == 1 for names in who.values())


def by_account(book: Book) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for number, some in groupby(entries(book, "account__number", "worker"), itemgetter(0)):
        yield number, list(some)


def dealt(texts: str, groups: int) -> dict[str, int]:
    deal, came = Deal(groups), [[BulkLine("", number, 1) for number in text] for text in texts.split()]
    for some in came:
        shares = deal.shares(some)
        assert sorted(line for share in shares for line in share) == sorted(some)
        assert all(
            deal.group_of[line.account] == group for group, share in enumerate(shares) for line in share
        )
    return deal.group_of


def test_the_accounts_with_the_most_lines_are_dealt_out_first() -> None:
    assert dealt("cabbbaacaddd", 2) == {"a": 0, "b": 1, "d": 1, "c": 0}
    assert dealt("cabbbaacaddd", 9) == {"a": 0, "b": 1, "d": 2, "c": 3}
    assert dealt("", 2) == {}


def test_a_late_caller_joins_the_group_with_the_fewest_lines_and_stays() -> None:
    assert dealt("ab aaac", 2)["c"] == 1
    assert dealt("ab aaac cccccd cc", 2) == {"a": 0, "b": 1, "c": 1, "d": 0}


def chunks_of(text: str, groups: int, size: int) -> list[tuple[int, str]]:
    lines = [BulkLine("", number, 1) for number in text]
    return [(place, "".join(line.account for line in chunk)) for place, chunk in _chunks(lines, groups, size)]


def test_no_chunk_has_more_lines_than_were_asked_for() -> None:
    """Whatever share of the load is one account's: its chunk is what others wait for."""
    assert chunks_of("aaaaaaaaaa", 4, 2) == [(0, "aa")] * 5
    assert chunks_of("aab" + "aaab" * 3, 2, 2) == [
        *[(0, "aa"), (0, "a"), (1, "b")],
        *[(0, "aa")],
        *[(0, "aa"), (0, "aa"), (1, "bb")],
        *[(0, "aa"), (1, "b")],
    ]


@pytest.mark.parametrize("given", [{"chunk": 0}, {"sessions": 0}, {"chunk": -1}])
def test_without_a_session_or_a_line_there_is_no_load(book: Book, given: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        load_lines(book, LINES, **given)


def test_a_load_posts_what_is_missing(book: Book) -> None:
    assert load_lines(book, []) == Posted(0, 0)
    assert load_lines(book, LINES[5:20], chunk=3) == Posted(15, 0)
    assert load_lines(book, LINES, chunk=3) == Posted(25, 15)
    assert load_lines(book, LINES, sessions=3) == Posted(0, 40)
    assert there(book) == 40
    assert books_of(book).right


@pytest.mark.parametrize("account", ["A0", "A1"])
def test_a_key_that_comes_twice_refuses_the_load(book: Book, account: str) -> None:
    """In two groups, the sessions could wait for each other's key."""
    with pytest.raises(KeyTaken):
        load_lines(book, [*LINES, BulkLine("k000", account, 1)], chunk=1)
    assert there(book) == 0


def test_no_chunk_is_committed_before_all_keys_are_known_to_be_different(book: Book) -> None:
    """The sessions begin meanwhile: here their first chunks are done before the last key is looked at."""

    def both_wait() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT state FROM pg_stat_activity"
                " WHERE query LIKE '%UPDATE ledger_account SET%' AND pid <> pg_backend_pid()"
            )
            return cursor.fetchall() == [("idle in transaction",)] * 2

    class Read(list[BulkLine]):
        """For the keys; what is dealt out are slices, plain lists."""

        def __iter__(self) -> Iterator[BulkLine]:
            yield from self[:-1]
            eventually(lambda: both_wait() or there(book), "each session has a chunk done")
            yield self[-1]

    lines = Read([*LINES, BulkLine("k000", "A1", 1)])
    with pytest.raises(KeyTaken):
        load_lines(book, lines, chunk=5)
    assert there(book) == 0


def test_the_first_chunk_is_short_and_no_line_is_left_out(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.imports.side_by_side.FIRST", 2)
    assert load_lines(book, LINES, chunk=7) == Posted(40, 0)
    assert [key for key, number in entries(book, "key", "account__number") if number == "A0"] == [
        line.key for line in LINES if line.account == "A0"
    ]
    assert books_of(book).right


@pytest.mark.parametrize(
    ("line", "error", "stopped"),
    [
        (BulkLine("x", "A1", -500), Refused, "A1 A3"),
        (BulkLine("x", "A9", 1), Refused, "A0 A2"),  # dealt out last
        (BulkLine("old", "A1", 2), KeyReused, "A1 A3"),
    ],
)
def test_a_group_ends_at_its_first_refused_chunk_and_the_others_go_on(
    book: Book, line: BulkLine, error: type[Exception], stopped: str
) -> None:
    post(book, Posting("old", (Line("A0", 1),)))
    with pytest.raises(Incomplete) as told:
        load_lines(book, [*LINES[:8], line, *LINES[8:]], sessions=2, chunk=4)
    (cause,) = told.value.causes
    assert isinstance(cause, error)
    assert told.value.__cause__ is cause
    assert told.value.done == Posted(24, 0)
    ended = [key for key, number in entries(book, "key", "account__number") if number in stopped]
    ended.remove("old") if "old" in ended else None
    assert sorted(ended) == [each.key for each in LINES[:8] if each.account in stopped]
    assert books_of(book).right
    assert load_lines(book, LINES, chunk=4) == Posted(16, 24)
    assert books_of(book).right


def test_a_caller_in_a_transaction_is_refused(book: Book) -> None:
    """It could hold what the sessions wait for, and wait for them: no database sees such a circle."""
    with transaction.atomic(), pytest.raises(transaction.TransactionManagementError):
        load_lines(book, LINES)
    assert there(book) == 0


def test_ctrl_c_ends_a_session_that_waits(book: Book, other: Any) -> None:
    """It would wait for as long as the other program likes."""
    lock(other, book, "A1")
    main = threading.main_thread().ident
    assert main

    def interrupt() -> None:
        waiter(other)
        eventually(lambda: there(book) == 20, "the other group is posted")
        signal.pthread_kill(main, signal.SIGINT)

    thread = beside(interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_lines(book, LINES, sessions=2)
    thread.join()
    assert {number for (number,) in entries(book, "account__number")} == {"A0", "A2"}
    assert books_of(book).right


def test_a_session_that_breaks_ends_its_group_only(book: Book, other: Any) -> None:
    lock(other, book, "A1")
    thread = beside(lambda: end_session("default", waiter(other)))
    with pytest.raises(Incomplete) as told:
        load_lines(book, LINES, sessions=2)
    thread.join()
    assert isinstance(told.value.causes[0], DatabaseError)
    assert told.value.done == Posted(20, 0)
    other.rollback()
    assert load_lines(book, LINES) == Posted(20, 20)
    assert books_of(book).right


def test_a_circle_with_another_program_is_busy(book: Book, other: Any) -> None:
    """The server rolls one of the two back: in the end it was the load, which is posted afterwards."""
    refused: Incomplete | None = None
    for _ in range(10):
        book = open_book("select-for-update", [(f"A{n}", 0, 0) for n in range(4)])
        lock(other, book, "A1")
        with other.cursor() as cursor:
            cursor.execute("SET LOCAL deadlock_timeout = '60s'")  # so that the load looks first
        thread = beside(lambda book=book: waiter(other) and lock(other, book, "A0"))
        try:
            load_lines(book, LINES, sessions=1)
        except Incomplete as error:
            refused = error
            break
        finally:
            thread.join()
            other.rollback()
    assert refused
    assert isinstance(refused.causes[0], Busy)
    assert refused.done == Posted(0, 0)
    assert load_lines(book, LINES) == Posted(40, 0)
    assert books_of(book).right


def lock(other: Any, book: Book, number: str) -> None:
    with other.cursor() as cursor:
        cursor.execute(LOCK, [book.pk, number])


def waiter(other: Any) -> int:
    """The session that waits for the other program."""
    found: list[int] = []
    eventually(lambda: found.extend(waiting_for(session_of(other))) or found, "the load waits")
    return found[0]


def test_threads_take_short_turns_while_a_load_runs_and_usual_ones_afterwards() -> None:
    usual = sys.getswitchinterval()
    with short_turns():
        with short_turns():
            assert sys.getswitchinterval() == pytest.approx(TURN)
        assert sys.getswitchinterval() == pytest.approx(TURN)
    assert sys.getswitchinterval() == pytest.approx(usual)
