"""The single writer: its own answer for everyone, and a successor that neither loses nor repeats."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from typing import Any

import psycopg
import pytest
from django.db import connection, connections

from ledger.books import post
from ledger.models import Account, Book, BookOwner, Entry
from ledger.posting import Busy, Line, Posting, Refused
from ledger.reconcile_stored import books_of
from ledger.stores.arrays import plain, quoted
from ledger.strategies import find
from ledger.writer import Answer, Owner, ask
from ledger.writer.clients import CallerConnection
from ledger.writer.owner import ENOUGH
from tests.ledger.owners import LONG, Caller, begun, candidates, committed, end_lease, heard, opened

pytestmark = pytest.mark.usefixtures("committed_db")


book = pytest.fixture(opened)
owners = pytest.fixture(candidates)


def test_everyone_gets_its_own_answer(book: Book) -> None:
    with ThreadPoolExecutor(8) as pool:
        postings = [Posting(f"k{n}", (Line("A", n),)) for n in range(40)]
        answers = list(pool.map(lambda posting: post(book, posting), postings))
        pool.map(lambda _: connections.close_all(), range(8))
    assert [answer.entries[0].amount for answer in answers] == list(range(40))
    books = books_of(book)
    assert (books.final, books.balanced, books.entries) == (100 + sum(range(40)), True, 40)


def test_a_window_of_postings_is_answered_in_order(book: Book) -> None:
    strategy = find("single-writer")(book)
    postings = [Posting(f"k{n}", (Line("A", -30),)) for n in range(5)]
    words = [answer.word for answer in strategy.ask(postings)]
    assert words == ["stored"] * 3 + ["refused"] * 2
    assert books_of(book).final == 10


def test_a_window_larger_than_any_buffer(book: Book) -> None:
    postings = [Posting(f"{n:0100}", (Line("B", n),)) for n in range(6000)]
    answers = find("single-writer")(book).ask(postings)
    assert [answer.entries[0].amount for answer in answers] == list(range(6000))
    assert {answer.entries[0].entry for answer in answers} == set(
        Entry.objects.filter(book=book).values_list("id", flat=True)
    )
    assert books_of(book).final == 100 + sum(range(6000))


def test_entries_of_the_same_time_have_ids_beside_each_other(book: Book) -> None:
    """In the index, that is: what is written together changes few of its pages."""
    before = int(time.time())
    applied = post(book, Posting("k", (Line("A", -1), Line("B", 1))))
    first, second = sorted(each.entry.int for each in applied.entries)
    assert before <= first >> 96 <= time.time()
    assert second == first + 1


def test_a_refused_transfer_leaves_nothing(book: Book) -> None:
    with pytest.raises(Refused):
        post(book, Posting("k1", (Line("B", 200), Line("A", -200))))
    with pytest.raises(Refused):
        post(book, Posting("k2", (Line("Z", 1),)))
    post(book, Posting("k3", (Line("B", 60), Line("A", -60))))
    books = books_of(book)
    assert (books.entries, books.final, books.balanced) == (2, 100, True)


@pytest.mark.parametrize(
    "posting",
    [
        Posting("k\0", (Line("A", 1),)),
        Posting("k", (Line("A\0", 1),)),
        Posting("k" * 101, (Line("A", 1),)),
        Posting("", (Line("A", 1),)),
        Posting("k", (Line("A", 2**63),)),
        Posting("k", (Line("A", 2**70),)),
        Posting("k", (Line("A", 2**63 - 1),)),
        Posting("k", (Line("A", 1), Line("A", 1))),
    ],
)
def test_what_the_database_would_not_take_spoils_nobodys_group(book: Book, posting: Posting) -> None:
    with pytest.raises(Refused):
        find("single-writer")(book).apply(posting)
    assert find("single-writer")(book).apply(Posting("good", (Line("A", 1),))).entries[0].balance_after == 101


def test_a_replayed_key_gives_the_first_answer(book: Book) -> None:
    first = post(book, Posting("k", (Line("A", 10),)))
    again = post(book, Posting("k", (Line("A", 10),)))
    assert (again.replayed, again.entries) == (True, first.entries)
    assert find("single-writer")(book).ask([Posting("k", (Line("A", 10),))])[0].word == "taken"
    assert books_of(book).final == 110


def test_only_one_owns_a_book_until_its_lease_ends(book: Book, owners: tuple[Owner, Owner]) -> None:
    first, second = owners
    assert first.take_over()
    assert not second.take_over()
    end_lease(book)
    assert second.take_over()
    assert (first.fence, second.fence) == (1, 2)
    first._renewed = 0.0
    first.renew()
    assert first.fence is None


def test_an_owner_paused_past_its_lease_commits_nothing(book: Book, owners: tuple[Owner, Owner]) -> None:
    first, second = owners
    first.take_over()
    caller = Caller(book, Posting("k1", (Line("A", 10),)), Posting("k2", (Line("A", 20),)))
    heard(first)  # it has the order, and is paused
    end_lease(book)
    assert second.take_over()
    begun(first)
    while first.fence is not None:
        first.hear(5)
    assert not Entry.objects.filter(book=book).exists()
    assert [each.balances for each in caller.served_by(second)] == [[110], [130]]
    books = books_of(book)
    assert (books.final, books.entries, books.balanced) == (130, 2, True)


def test_what_a_dead_owner_had_committed_is_answered_by_its_successor(
    book: Book, owners: tuple[Owner, Owner]
) -> None:
    first, second = owners
    first.take_over()
    transfer = Posting("k1", (Line("B", 10), Line("A", -10)))
    caller = Caller(book, Posting("k0", (Line("A", 5),)), transfer)
    heard(first)
    begun(first)
    assert committed(first) == 1
    end_lease(book)
    assert second.take_over()  # before the caller's own process looks for an owner
    first.let_go()  # it dies before it answers
    answers = caller.served_by(second)
    assert [(each.word, each.balances) for each in answers] == [("stored", [105]), ("stored", [10, 95])]
    assert {stored.entry for each in answers for stored in each.entries} == set(
        Entry.objects.filter(book=book).values_list("id", flat=True)
    )
    books = books_of(book)
    assert (books.final, books.entries) == (105, 3)


def test_a_dead_owners_withdrawal_of_everything_is_not_refused_by_its_successor(
    book: Book, owners: tuple[Owner, Owner]
) -> None:
    first, second = owners
    first.take_over()
    caller = Caller(book, Posting("k1", (Line("A", -100),)))
    heard(first)
    begun(first)
    assert committed(first) == 1
    end_lease(book)
    assert second.take_over()  # before the caller's own process looks for an owner
    first.let_go()
    assert [(each.word, each.balances) for each in caller.served_by(second)] == [("stored", [0])]
    other = Caller(book, Posting("k1", (Line("A", -100),)), Posting("k2", (Line("A", -100),)))
    assert [each.word for each in other.served_by(second)] == ["taken", "refused"]


def test_callers_that_come_back_at_once_share_a_commit(book: Book, owners: tuple[Owner, Owner]) -> None:
    owner, _ = owners
    owner.take_over()
    assert owner.clients is not None
    with ThreadPoolExecutor(2) as pool:

        def both(turn: int) -> list[Future[list[Answer]]]:
            return [
                pool.submit(ask, book, [Posting(f"{turn}-{n}", (Line("A", 1),))], 20.0, LONG) for n in (0, 1)
            ]

        for turn in range(2):  # in the first, no caller is known yet; after it, all have come back
            asked = both(turn)
            while len(owner.clients.asked) < 2:
                owner.hear(5)
            begun(owner)
            owner._begun -= LONG  # a commit that took a minute
            while owner.group:
                owner.hear(5)
            assert all(each.result() for each in asked)
        one = pool.submit(ask, book, [Posting("one", (Line("A", 1),))], 20.0, LONG)
        heard(owner)
        owner.serve()
        assert owner.group is None  # the other one is waited for
        two = pool.submit(ask, book, [Posting("two", (Line("A", 1),))], 20.0, LONG)
        while owner.group is None:
            owner.serve(5)
        assert len(owner.group.id) == 2
        while owner.group:
            owner.hear(5)
        assert one.result()
        assert two.result()


def test_a_window_does_not_wait_for_single_callers(book: Book, owners: tuple[Owner, Owner]) -> None:
    owner, _ = owners
    owner.take_over()
    assert owner.clients is not None
    owner.clients.awaited.add(CallerConnection(socket.socket(), 0.0))
    owner.clients.patience = time.monotonic() + LONG
    with ThreadPoolExecutor(1) as pool:
        window = [Posting(f"k{n}", (Line("A", 1),)) for n in range(ENOUGH)]
        answers = pool.submit(ask, book, window, 20.0, LONG)
        while not owner.clients.asked:
            owner.hear(5)
        assert owner.clients.awaited
        owner.serve()
        assert owner.group is not None
        assert len(owner.group.id) == ENOUGH
        while owner.group:
            owner.hear(5)
        assert all(each.word == "stored" for each in answers.result())


def test_a_caller_that_does_not_come_back_is_waited_for_once(book: Book, owners: tuple[Owner, Owner]) -> None:
    owner, _ = owners
    owner.take_over()
    assert owner.clients is not None
    gone = Caller(book, Posting("gone", (Line("A", 1),)))
    heard(owner)
    owner.clients.asked[0].client.prompt = True
    assert len(gone.served_by(owner)) == 1
    assert len(owner.clients.awaited) <= 1
    owner.clients.patience = 0.0
    assert len(Caller(book, Posting("stays", (Line("A", 1),))).served_by(owner)) == 1
    assert not owner.clients.awaited


def test_an_order_that_comes_twice_into_one_group_is_applied_once(
    book: Book, owners: tuple[Owner, Owner]
) -> None:
    first, _ = owners
    first.take_over()
    caller = Caller(book, Posting("k1", (Line("A", 10),)))
    heard(first)
    assert first.clients is not None
    (asked,) = first.clients.asked
    other = asked._replace(
        order=type(asked.order)("0" * 24, asked.order.requests)
    )  # another caller with this key
    first.clients.asked.extend([asked, other])
    begun(first)
    assert first.group is not None
    assert first.group.answers == [[[110]], [[110]], [None]]
    assert [each.balances for each in caller.served_by(first)] == [[110]]
    assert books_of(book).final == 110


def own(book_pk: object, lease: float, owned: Event) -> None:
    """A process that owns a book, or waits for it, until it is killed."""
    connections.close_all()
    owner = Owner(Book.objects.get(pk=book_pk), lease)
    while True:
        if owner.take_over():
            owned.set()
            owner.run()
        owner.stop.wait(0.05)


@contextmanager
def two_owners(book: Book, lease: float) -> Iterator[list[multiprocessing.process.BaseProcess]]:
    connections.close_all()
    context = multiprocessing.get_context("fork")
    owned = context.Event()
    processes = [context.Process(target=own, args=(book.pk, lease, owned), daemon=True) for _ in range(2)]
    for process in processes:
        process.start()
    try:
        assert owned.wait(20)
        yield list(processes)
    finally:
        for process in processes:
            process.kill()
            process.join()


@pytest.mark.parametrize("struck", [signal.SIGKILL, signal.SIGSTOP])
def test_the_owners_process_is_struck_and_another_takes_over(book: Book, struck: signal.Signals) -> None:
    with two_owners(book, LONG) as processes:
        for number in range(60):
            if number == 20:
                pid = int(BookOwner.objects.get(book=book).holder.split(":")[1])
                assert pid in {process.pid for process in processes}
                os.kill(pid, struck)
                end_lease(book)
            if number == 40 and struck == signal.SIGSTOP:
                os.kill(pid, signal.SIGCONT)
            (answer,) = ask(book, [Posting(f"k{number}", (Line("B", 1),))], 60.0, 5.0)
            assert (answer.word, answer.balances) == ("stored", [number + 1])
        owner = BookOwner.objects.get(book=book)
        assert int(owner.holder.split(":")[1]) != pid
        assert owner.fence == 2
    books = books_of(book)
    assert (books.final, books.entries, books.lost_updates, books.balanced) == (160, 60, 0, True)


def test_a_caller_waits_for_its_own_timeout_on_a_kept_connection(book: Book) -> None:
    with two_owners(book, LONG):
        assert ask(book, [Posting("k1", (Line("B", 1),))], 20.0, LONG)[0].word == "stored"
        os.kill(int(BookOwner.objects.get(book=book).holder.split(":")[1]), signal.SIGSTOP)
        asked = time.monotonic()
        with pytest.raises(TimeoutError, match="same key"):
            ask(book, [Posting("k2", (Line("B", 1),))], 0.5, LONG / 3)
        assert time.monotonic() - asked < LONG / 6


def test_a_database_session_that_ends_costs_nobody_an_answer(book: Book) -> None:
    strategy = find("single-writer")(book)
    strategy.apply(Posting("k1", (Line("A", 10),)))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%%ledger_bookowner%%'"
        )
        assert cursor.fetchone()[0] >= 1
    assert strategy.apply(Posting("k2", (Line("A", 10),))).entries[0].balance_after == 120
    assert BookOwner.objects.get(book=book).fence == 2  # its own lease, ended by itself, and taken again


def test_an_owner_that_did_not_answer_leaves_the_outcome_unknown(
    book: Book, owners: tuple[Owner, Owner]
) -> None:
    first, _ = owners
    first.take_over()
    with pytest.raises(
        TimeoutError, match="same key"
    ):  # the system accepted the connection; no process reads from it
        ask(book, [Posting("k", (Line("A", 1),))], 0.3, LONG)


def test_without_an_owner_nothing_is_applied_for_certain(book: Book, owners: tuple[Owner, Owner]) -> None:
    first, _ = owners
    first.take_over()
    first.let_go()  # it is dead, and its lease is not over
    with pytest.raises(Busy, match="no owner"):
        ask(book, [Posting("k", (Line("A", 1),))], 0.3, LONG)


def test_an_owner_in_a_forked_child_is_not_the_parents(book: Book) -> None:
    """A copy of the owner's sockets that stayed open in a child would keep the callers waiting for a dead owner."""
    find("single-writer")(book).apply(Posting("k1", (Line("A", 1),)))
    connections.close_all()
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            sockets = [each for each in os.listdir("/proc/self/fd") if _is_a_socket_of_the_writer(each)]
            os.write(write, json.dumps(sockets).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        assert json.load(told) == []
    os.waitpid(child, 0)
    mine = [each for each in os.listdir("/proc/self/fd") if _is_a_socket_of_the_writer(each)]
    assert mine  # the control: the parent has them
    assert find("single-writer")(book).apply(Posting("k2", (Line("A", 1),))).entries[0].balance_after == 102


def _is_a_socket_of_the_writer(descriptor: str) -> bool:
    try:
        inode = os.readlink(f"/proc/self/fd/{descriptor}").removeprefix("socket:[").removesuffix("]")
    except OSError:
        return False
    with open("/proc/net/unix") as file:
        return any(f" {inode} " in line and "/ledger-" in line for line in file)


def test_an_owner_whose_account_went_writes_no_entry_for_it(book: Book, owners: tuple[Owner, Owner]) -> None:
    """It has the account in its memory. No foreign key would refuse the entry (docs/decisions/0011)."""
    owner, _ = owners
    assert owner.take_over()
    caller = Caller(book, Posting("late", (Line("B", 5),)))
    heard(owner)
    assert owner.clients is not None
    owner.books.compute(list(owner.clients.asked))  # reads the account
    owner.books.accounts["B"].balance = 0
    Account.objects.filter(book=book, number="B").delete()
    (answer,) = caller.served_by(owner)
    assert (answer.word, answer.reason) == ("refused", "no account B in this book")
    assert not Entry.objects.filter(book=book).exists()


def test_any_text_goes_through_as_an_array() -> None:
    texts = ["", "plain", 'a"b', "back\\slash", "{a,b}", "NULL", "ü\n\t", '\\"']
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT %s::text[], %s::text[], %s::text[], %s::bigint[]",
            [quoted(texts), quoted(["", "x"]), quoted([]), plain(["1", "NULL", "-2"])],
        )
        assert cursor.fetchone() == (texts, ["", "x"], [], [1, None, -2])


def test_the_fingerprint_is_that_of_the_requests_json() -> None:
    posting = Posting("k", (Line('ü"\\', -(2**70)), Line("A", 0)), "x\0")
    body = [[line.account, line.amount] for line in posting.lines] + [posting.description]
    assert posting.fingerprint == hashlib.sha256(json.dumps(body).encode()).hexdigest()[:32]


def test_callers_on_other_hosts_come_by_tcp(book: Book, settings: Any) -> None:
    settings.OWNER_LISTEN = "127.0.0.1"
    assert find("single-writer")(book).apply(Posting("k1", (Line("A", 1),))).entries[0].balance_after == 101
    assert BookOwner.objects.get(book=book).address.startswith("tcp:127.0.0.1:")


def test_an_owner_that_is_stopped_under_load_answers_its_group_and_gives_the_lease_back(
    book: Book, owners: tuple[Owner, Owner]
) -> None:
    first, second = owners
    first.take_over()
    caller = Caller(book, Posting("k1", (Line("A", 10),)))
    heard(first)
    begun(first)
    first.stop.set()
    first.run()
    caller.join(10)
    assert [each.balances for each in caller.answers] == [[110]]
    assert second.take_over()


def test_an_owner_whose_group_does_not_end_lets_go_without_the_lease(book: Book) -> None:
    """The next owner of the book, here the caller's own candidate, answers what the group has committed."""
    first = Owner(book, 1.0)
    first.take_over()
    caller = Caller(book, Posting("k1", (Line("A", 10),)))
    heard(first)
    with psycopg.connect(os.environ["DATABASE_URL"]) as other:
        other.execute("SELECT FROM ledger_account WHERE book_id = %s FOR UPDATE", [book.pk])
        begun(first)
        first.stop.set()
        first.run()
        assert first.fence is None
    connections.close_all()
    caller.join(20)
    assert [each.balances for each in caller.answers] == [[110]]
    assert books_of(book).entries == 1
