"""The single writer: its own answer for everyone, and a successor that neither loses nor repeats."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, connections
from redis import Redis
from redis.exceptions import ResponseError

from ledger.books import open_book, post
from ledger.models import Account, Book, BookOwner, Entry
from ledger.posting import Line, Posting, Refused
from ledger.reconciliation import books_of
from ledger.resources import redis_client
from ledger.strategies import find
from ledger.writer import Answer, Owner, Queue, direct
from ledger.writer.group import plain, quoted
from ledger.writer.queue import Order, Request

pytestmark = pytest.mark.usefixtures("committed_db")
LONG = 60.0  # a lease that does not end by itself during a test


@pytest.fixture
def book() -> Book:
    return open_book("single-writer", [("A", 100, 0), ("B", 0, None)])


def ask(book: Book, *postings: Posting) -> threading.Thread:
    """Ask from a thread of its own; returns when the requests are in the queue."""
    queue = Queue(redis_client(), book)
    before = queue.redis.llen(queue.name)
    thread = threading.Thread(target=queue.ask, args=(postings, 10.0))
    thread.start()
    while queue.redis.llen(queue.name) == before:
        time.sleep(0.001)
    return thread


def end_lease(book: Book) -> None:
    BookOwner.objects.filter(book=book).update(until="2000-01-01T00:00Z")


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


def test_a_refused_transfer_leaves_nothing(book: Book) -> None:
    with pytest.raises(Refused):
        post(book, Posting("k1", (Line("B", 200), Line("A", -200))))
    with pytest.raises(Refused):
        post(book, Posting("k2", (Line("Z", 1),)))
    post(book, Posting("k3", (Line("B", 60), Line("A", -60))))
    books = books_of(book)
    assert (books.entries, books.final, books.balanced) == (2, 100, True)


def test_a_replayed_key_gives_the_first_answer(book: Book) -> None:
    first = post(book, Posting("k", (Line("A", 10),)))
    again = post(book, Posting("k", (Line("A", 10),)))
    assert (again.replayed, again.entries) == (True, first.entries)
    assert find("single-writer")(book).ask([Posting("k", (Line("A", 10),))])[0].word == "taken"


def test_only_one_owns_a_book_until_its_lease_ends(book: Book) -> None:
    first, second = Owner(book, redis_client(), LONG), Owner(book, redis_client(), LONG)
    assert first.take_over()
    assert not second.take_over()
    end_lease(book)
    assert second.take_over()
    assert (first.fence, second.fence) == (1, 2)
    first.renew()
    assert first.fence is None


def test_an_owner_paused_past_its_lease_commits_nothing(book: Book) -> None:
    first, second = Owner(book, redis_client(), LONG), Owner(book, redis_client(), LONG)
    first.take_over()
    caller = ask(book, Posting("k1", (Line("A", 10),)), Posting("k2", (Line("A", 20),)))
    requests = first.queue.head(100, 0.1)  # it has read the queue, and is paused
    end_lease(book)
    assert second.take_over()
    assert second.serve()
    assert first.commit(requests) is False
    caller.join()
    books = books_of(book)
    assert (books.final, books.entries, books.balanced) == (130, 2, True)


def test_what_a_dead_owner_had_committed_is_answered_by_its_successor(
    book: Book, redis_client: Redis
) -> None:
    first, second = Owner(book, redis_client, LONG), Owner(book, redis_client, LONG)
    first.take_over()
    assert first.fence is not None
    caller = ask(book, Posting("k1", (Line("A", 10),)))
    requests = first.queue.head(100, 0.1)
    assert first.books.commit(
        first.books.compute(requests), first.fence, LONG
    )  # and it dies before it answers
    end_lease(book)
    second.take_over()
    assert second.serve()
    caller.join()
    assert second.queue.redis.llen(second.queue.name) == 0
    books = books_of(book)
    assert (books.final, books.entries) == (110, 1)


def test_an_old_owner_takes_nothing_off_its_successors_queue(book: Book) -> None:
    first, second = Owner(book, redis_client(), LONG), Owner(book, redis_client(), LONG)
    first.take_over()
    caller = ask(book, Posting("k1", (Line("A", 10),)))
    requests = first.queue.head(100, 0.1)
    end_lease(book)
    second.take_over()
    first.queue.answer(1, requests, first.books.compute(requests).answers)
    assert second.queue.redis.llen(second.queue.name) == 1
    second.serve()
    caller.join()


def own(book_pk: object) -> None:
    """A process that owns a book until it is killed."""
    connections.close_all()
    redis_client().connection_pool.reset()
    Owner(Book.objects.get(pk=book_pk), redis_client(), 0.5).run()


def test_the_owners_process_is_killed_and_another_takes_over(book: Book) -> None:
    connections.close_all()
    context = multiprocessing.get_context("fork")
    owners = [context.Process(target=own, args=(book.pk,), daemon=True) for _ in range(2)]
    for process in owners:
        process.start()
    queue = Queue(redis_client(), book)
    try:
        for number in range(60):
            if number == 20:
                holder = BookOwner.objects.get(book=book).holder
                pid = int(holder.split(":")[1])
                assert pid in {process.pid for process in owners}
                os.kill(pid, signal.SIGKILL)
            (answer,) = queue.ask([Posting(f"k{number}", (Line("B", 1),))], 10.0)
            assert answer.word == "stored"
        assert BookOwner.objects.get(book=book).fence == 2
    finally:
        for process in owners:
            process.kill()
            process.join()
    books = books_of(book)
    assert (books.final, books.entries, books.lost_updates, books.balanced) == (160, 60, 0, True)


def test_an_owner_whose_account_went_writes_no_entry_for_it(book: Book) -> None:
    """It has the account in its memory. No foreign key would refuse the entry (docs/decisions/0011)."""
    owner = Owner(book, redis_client(), LONG)
    assert owner.take_over()
    fence = owner.fence
    assert fence is not None
    order = Order("nobody", "w", [Request("late", "f", [("B", 5, uuid4().hex)])])
    group = owner.books.compute([order])
    Account.objects.filter(book=book, number="B").delete()
    with pytest.raises(IntegrityError, match="account_id"):
        owner.books.commit(group, fence, LONG)
    owner.books.forget()
    assert owner.books.compute([order]).answers == [[Answer("refused", "no account B in this book")]]
    assert not Entry.objects.filter(book=book).exists()


def test_any_text_goes_through_as_an_array() -> None:
    texts = ["", "plain", 'a"b', "back\\slash", "{a,b}", "NULL", "ü\n\t", '\\"']
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT %s::text[], %s::text[], %s::bigint[]", [quoted(texts), quoted([]), plain([1, None, -2])]
        )
        assert cursor.fetchone() == (texts, [], [1, None, -2])


def test_the_fingerprint_is_that_of_the_requests_json() -> None:
    posting = Posting("k", (Line('ü"\\', -(2**70)), Line("A", 0)), "x\0")
    body = [[line.account, line.amount] for line in posting.lines] + [posting.description]
    assert posting.fingerprint == hashlib.sha256(json.dumps(body).encode()).hexdigest()


def test_a_direct_connection_outlives_a_restart_and_an_error(redis_client: Redis) -> None:
    assert direct.ask(redis_client, ("ECHO", "a"), ("ECHO", "b")) == [b"a", b"b"]
    (mine,) = direct.ask(redis_client, ("CLIENT", "ID"))
    redis_client.client_kill_filter(_id=mine)  # what a restart does to it
    assert direct.ask(redis_client, ("ECHO", "c")) == [b"c"]
    with pytest.raises(ResponseError):
        direct.ask(redis_client, ("NONE",), ("ECHO", "this reply is nobody's"))
    assert direct.ask(redis_client, ("ECHO", "d")) == [b"d"]


def test_an_owner_answers_though_the_server_forgot_its_script(book: Book, redis_client: Redis) -> None:
    owner = Owner(book, redis_client, LONG)
    assert owner.take_over()
    caller = ask(book, Posting("k1", (Line("A", 10),)))
    redis_client.script_flush()
    assert owner.serve()
    caller.join()
    assert books_of(book).final == 110
