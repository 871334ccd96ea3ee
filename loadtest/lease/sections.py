"""How long the lab's own sections take: from the moment a lock is held until the posting is written."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any

from django.db import connections

from ledger.books import open_book
from ledger.posting import Busy, Line, Posting
from ledger.strategies import Locked, find

ACCOUNT = "A0001"


def measure(strategy: str, callers: int, seconds: float) -> list[float]:
    """Return the seconds of each section of `callers` threads that post to one account. Raises ValueError when the
    strategy holds no lock around its section, or no section came to its end in time."""
    kind = find(strategy)
    if not issubclass(kind, Locked):
        raise ValueError(
            f"{strategy}: its lock ends with its transaction and has no lease. Give the name of a lock"
        )
    times: list[float] = []

    class Timed(kind):  # type: ignore[valid-type,misc]
        def inside(self, *args: Any) -> Any:
            began = time.perf_counter()
            done = super().inside(*args)
            times.append(time.perf_counter() - began)
            return done

    book = open_book(strategy, [(ACCOUNT, 0, None)])
    until = time.monotonic() + seconds

    def caller() -> None:
        with closing(connections["default"]):
            while time.monotonic() < until:
                with suppress(Busy):
                    Timed(book).apply(Posting(uuid.uuid4().hex, (Line(ACCOUNT, 1),)))

    with ThreadPoolExecutor(callers) as pool:
        for each in [pool.submit(caller) for _ in range(callers)]:
            each.result()
    if not times:
        raise ValueError(f"{strategy}: no section came to its end in {seconds:g} s. Give more --seconds")
    return times
