"""The article's 14 of 10 prizes, by both routes that lead there (loadtest/workloads/stock.py), and its judgement."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import Barrier

import pytest
from django.db import connection

from ledger.books import post
from ledger.models import Book
from ledger.posting import Line, Posting, Refused
from ledger.reconcile import ClientOutcome
from ledger.strategies.check_then_decrement import CheckThenDecrement
from loadtest import workloads
from loadtest.history.calls import Call, CallHistory
from loadtest.servers import Valkey
from loadtest.trials.case import JudgedCase, TrialCase, Witness, run
from loadtest.verdict.words import Word

pytestmark = pytest.mark.usefixtures("committed_db")
TEN = workloads.find("stock", stock=10, deliveries=0)
LEGS = (("A0001", -1),)


def buy(book: Book, number: int) -> Call:
    """Ask for one prize; return the buyer's answer."""
    key, started = f"buyer-{number}", time.time()
    try:
        post(book, Posting(key, tuple(Line(*leg) for leg in LEGS)))
        outcome = ClientOutcome.OK
    except Refused:
        outcome = ClientOutcome.FAIL
    finally:
        connection.close()
    return Call(key, LEGS, outcome, started, time.time(), key)


def judged(strategy: str, store: str, sale: Callable[[Book], list[Call]]) -> JudgedCase:
    case = TrialCase(strategy=strategy, workload=TEN, store=store, settings={"think": [0, 0]})
    return run(case, lambda _, book: Witness(history=CallHistory(sale(book))), Word.LOST)


def given_away(result: JudgedCase) -> int:
    return result.observed.acknowledged


@pytest.mark.parametrize(
    ("strategy", "prizes", "word"), [("check-then-decrement", 14, "oversold"), ("atomic-update", 10, "kept")]
)
def test_checked_before_anybody_took_one(
    strategy: str, prizes: int, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fourteen look at the shelf, and only then does the first one take a prize."""
    checked = Barrier(14)
    monkeypatch.setattr(CheckThenDecrement, "think", lambda self: checked.wait(30))
    begin = Barrier(14)

    def sale(book: Book) -> list[Call]:
        def buyer(number: int) -> Call:
            begin.wait(30)
            return buy(book, number)

        with ThreadPoolExecutor(14) as buyers:
            return list(buyers.map(buyer, range(14)))

    result = judged(strategy, "postgres", sale)
    assert (given_away(result), result.word) == (prizes, word)
    assert result.books is not None
    assert (result.books.final, result.books.lost_updates) == (10 - prizes, 0)


def test_acknowledged_and_forgotten_by_a_restart(
    valkey_server: Callable[..., Valkey], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counter never lets two take one prize, and starts again from a snapshot of the sale's middle."""
    server = valkey_server()
    monkeypatch.setattr(import_module("ledger.stores.redis"), "redis_client", server.client)

    def sale(book: Book) -> list[Call]:
        sold = [buy(book, number) for number in range(6)]
        server.client().save()
        sold += [buy(book, number) for number in range(6, 11)]  # the eleventh buyer is too late
        server.kill()
        server.start()
        return sold + [buy(book, number) for number in range(11, 16)]

    result = judged("redis-atomic", "redis", sale)
    assert given_away(result) == 14
    assert result.word == "lost"  # four buyers hold a promise of which no record is left …
    assert [each.word for each in result.verdict.breaches] == [
        "lost",
        "oversold",
    ]  # … and there were ten prizes
    assert result.books is not None
    assert (result.books.final, result.books.lost_amount, result.books.expected) == (0, 4, -4)
