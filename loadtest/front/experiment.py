"""The experiment of the front page: ten workers add 1 to one account at once, without a lock and then with one.

    begin(slug) → a row → in a thread of this process: the control, then the strategy, each on a fresh book
    seen(row)   → what stands in those books now

Anybody may start it, so it is small and bounded: one at a time in the whole lab, so many a minute, and no setting is
the visitor's. It takes the path of every other trial (loadtest/trials/case.py), so its words are the court's.
"""

from __future__ import annotations

import logging
import random
import re
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from django.db import connection, connections, transaction
from django.utils import timezone

from ledger.books import post
from ledger.models import Book
from ledger.posting import Busy, Line, Posting, Refused
from ledger.reconcile import ClientOutcome
from ledger.reconcile.chain import Chain, follow
from ledger.stores import store_of
from ledger.strategies import CONTROL, STRATEGIES
from loadtest import models, workloads
from loadtest.history.calls import Call, CallHistory
from loadtest.report.pages.kinds import ON_ONE_MACHINE, group_of
from loadtest.trials import records
from loadtest.trials.availability import missing
from loadtest.trials.case import TrialCase, Witness, run, skipped
from loadtest.trials.dependencies import store_of as usual_store
from loadtest.verdict.words import Word

COMMAND = "experiment"
WORKERS = 10
#: seconds: the hot-account article's 1–100 ms (A8), in the window between read and write
THINK = (0.001, 0.1)
#: a waiting lock looks again so often, and gives up after so long. The article's own 500 ms would take a visitor's time
POLL, TIMEOUT = 0.02, 5.0
#: seconds after which a run that has not ended counts as cut short: its process was killed
LATEST = 30.0
MOST_A_MINUTE = 12
#: rows of experiments that are kept; the entries of a book are kept for good, as all entries are
KEPT = 50
_BEGINNING = 0x46524F4E
#: who an entry was written by: the host and the process are the same for all
_WHERE = re.compile(r"\S+:\d+:(worker-\d+)")
log = logging.getLogger(__name__)


class NotNow(Exception):
    """Another visitor's experiment runs, or too many were started: try again in a moment."""


def offered() -> list[str]:
    """Return the strategies that a visitor may pick. The ten workers are threads of one process here: a lock inside one
    machine would look as if it were a lock between machines."""
    return [
        slug
        for slug in STRATEGIES
        if slug != CONTROL and group_of(slug) != ON_ONE_MACHINE and not missing(slug, usual_store(slug))
    ]


def begin(strategy: str) -> models.Trial:
    """Start the experiment. Raises ValueError for a strategy that is not offered, and NotNow."""
    if strategy not in offered():
        raise ValueError(f"no strategy {strategy!r} to pick here: take one of the list")
    now = timezone.now()
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_BEGINNING])
        earlier = models.Trial.objects.filter(command=COMMAND)
        if earlier.filter(ended=None, started__gt=now - timedelta(seconds=LATEST)).exists():
            raise NotNow("another visitor's experiment is running: yours can start in a few seconds")
        if earlier.filter(started__gt=now - timedelta(minutes=1)).count() >= MOST_A_MINUTE:
            raise NotNow(f"{MOST_A_MINUTE} experiments were started within a minute: wait for a moment")
        row = records.begin(
            COMMAND,
            workload="deposits",
            store=usual_store(strategy),
            strategies=[CONTROL, strategy],
            books={},
        )
        stale = earlier.order_by("-started").values_list("pk", flat=True)[KEPT:]
        earlier.filter(pk__in=list(stale)).delete()
    threading.Thread(target=_run, args=(row,), name=f"experiment {row.pk}", daemon=True).start()
    return row


def _run(row: models.Trial) -> None:
    """Both cases, one after the other; whatever goes wrong, the row ends."""
    control: Word | None = None
    try:
        for strategy in row.options["strategies"]:
            case = _case(strategy, row.store)
            try:
                judgement = run(case, _Workers(row), control)
            except Exception as error:
                log.exception("the experiment with %s failed", strategy)
                judgement = skipped(case, f"it failed: {type(error).__name__}")
            records.record(row, judgement)
            control = judgement.word if strategy == CONTROL else control
        records.close(row)
    finally:
        connections.close_all()


def _case(strategy: str, store: str) -> TrialCase:
    return TrialCase(
        strategy=strategy,
        workload=workloads.find("deposits", 1, most=1),
        store=store,
        settings={"think": list(THINK), "poll": POLL, "timeout": TIMEOUT},
    )


class _Workers:
    """Ten threads that leave one barrier together, each with a connection of its own."""

    def __init__(self, row: models.Trial) -> None:
        self.row, self.barrier = row, threading.Barrier(WORKERS)

    def __call__(self, case: TrialCase, book: Book) -> Witness:
        self.row.options["books"][case.strategy] = str(book.pk)
        self.row.save(update_fields=["options"])
        legs = case.workload.posting(random.Random())  # noqa: S311  (no secret)
        postings = [
            Posting(f"worker-{n}-{uuid.uuid4().hex[:8]}", tuple(Line(*leg) for leg in legs or ()))
            for n in range(1, WORKERS + 1)
        ]
        with ThreadPoolExecutor(WORKERS) as threads:
            return Witness(
                history=CallHistory(list(threads.map(lambda each: self._call(book, each), postings)))
            )

    def _call(self, book: Book, posting: Posting) -> Call:
        outcome, error, busy, retries = ClientOutcome.OK, "", False, 0
        threading.current_thread().name = posting.key.rsplit("-", 1)[
            0
        ]  # as the entries and the verdict name it
        started = time.time()
        try:
            connections["default"].ensure_connection()
            self.barrier.wait(TIMEOUT)
            started = time.time()
            retries = post(book, posting).retries
        except (Refused, Busy) as refusal:
            outcome, error, busy = ClientOutcome.FAIL, str(refusal), isinstance(refusal, Busy)
        except Exception as failure:  # noqa: BLE001  (nobody knows whether it was applied: an answer of its own)
            outcome, error = ClientOutcome.INFO, f"{type(failure).__name__}: {failure}"
        finally:
            connections.close_all()
        legs = tuple((line.account, line.amount) for line in posting.lines)
        me = threading.current_thread().name
        return Call(
            posting.key, legs, outcome, started, time.time(), me, True, retries, busy=busy, error=error
        )


def seen(row: models.Trial) -> dict[str, Any]:
    """Return what the page shows of an experiment now. `over`: nothing will change any more."""
    results = {each.strategy: each for each in row.results.all()}
    late = (timezone.now() - row.started).total_seconds() > LATEST
    sides = [
        _side(slug, row.options["books"].get(slug), results.get(slug)) for slug in row.options["strategies"]
    ]
    return {"pk": row.pk, "sides": sides, "over": bool(row.ended) or late, "cut": late and not row.ended}


def _side(slug: str, book_id: str | None, result: models.Result | None) -> dict[str, Any]:
    book = Book.objects.filter(pk=book_id).first() if book_id else None
    chains = list(_chains(book)) if book else []
    cells = _cells(chains)
    written = [each for each in cells if each["read"] is not None]
    told = (result.data.get("cause") or result.data.get("reason") or "") if result else ""
    return {
        "slug": slug,
        "title": STRATEGIES[slug].title,
        "begun": book is not None,
        "balance": sum(chain.account.balance for chain in chains),
        "answered": len(written),
        "lost": sum(each["lost"] for each in written),
        "cells": cells,
        "result": result,
        "told": _WHERE.sub(r"\1", told),
    }


def _chains(book: Book) -> Iterator[Chain]:
    store = store_of(book)
    with store.at_one_moment():
        for account, entries in store.everything():
            yield follow(account, [each.whole() for each in entries])


def _cells(chains: list[Chain]) -> list[dict[str, Any]]:
    """One cell for each worker: what it had read, what it wrote, and whether somebody overwrote it."""
    found: dict[int, dict[str, Any]] = {}
    for chain in chains:
        for node, row in chain.rows.items():
            number = int(row.key.split("-")[1])
            found[number] = {
                "number": number,
                "read": row.balance_before,
                "wrote": row.balance_after,
                "lost": node not in chain.above,
            }
    nothing = {"read": None, "wrote": None, "lost": False}
    return [found.get(number, {"number": number, **nothing}) for number in range(1, WORKERS + 1)]
