"""What is counted while the ledger works, for Prometheus. docs/operating.md lists the names and what they mean.

A counter costs about a microsecond. Under gunicorn the processes count into files of their own, and whichever process
answers `/metrics` adds them up (ledger/http/gunicorn.py).
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from prometheus_client import Counter, Gauge, Histogram

from ledger.posting import Busy, Refused

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

POSTINGS = Counter("lab_postings", "Postings, by what their caller was told", ["strategy", "outcome"])
POSTING_SECONDS = Histogram(
    "lab_posting_seconds", "From the request to its outcome", ["strategy"], buckets=_SECONDS
)
RETRIES = Counter("lab_retries", "Attempts beyond the first, of applied postings", ["strategy"])
LOCK_WAIT = Histogram(
    "lab_lock_wait_seconds",
    "Time to take a lock of locks/, also in vain; a row's lock is not among them",
    ["strategy"],
    buckets=_SECONDS,
)
IMPORT_LINES = Counter("lab_import_lines", "Lines of imports, by how they ended", ["outcome"])
RECONCILED = Counter("lab_reconciliations", "Books that were reconciled", ["strategy", "result"])
LOST_AMOUNT = Gauge(
    "lab_lost_amount",
    "Lost money of the book that was reconciled last, in minor units",
    ["strategy"],
    multiprocess_mode="mostrecent",
)


@contextmanager
def posting(strategy: str) -> Iterator[Callable[..., None]]:
    """Count one posting. Call what this yields with the retries, once it is applied; an error counts by its kind."""
    began, outcome = time.perf_counter(), "unknown"

    def applied(retries: int, *, replayed: bool) -> None:
        nonlocal outcome
        outcome = "replayed" if replayed else "ok"
        if retries:
            RETRIES.labels(strategy).inc(retries)

    try:
        yield applied
    except Busy:
        outcome = "busy"
        raise
    except Refused:
        outcome = "refused"
        raise
    finally:
        POSTINGS.labels(strategy, outcome).inc()
        POSTING_SECONDS.labels(strategy).observe(time.perf_counter() - began)


@contextmanager
def lock_wait(strategy: str) -> Iterator[None]:
    """Measure how long a lock takes to be granted or refused."""
    with LOCK_WAIT.labels(strategy).time():
        yield


def imported(outcomes: Iterable[str]) -> None:
    """Count the lines of an import that have ended."""
    for outcome, lines in Tally(outcomes).items():
        IMPORT_LINES.labels(outcome).inc(lines)


def reconciled(strategy: str, lost_amount: int, *, right: bool) -> None:
    """Note what a book's reconciliation found."""
    RECONCILED.labels(strategy, "right" if right else "wrong").inc()
    LOST_AMOUNT.labels(strategy).set(lost_amount)
