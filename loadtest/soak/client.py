"""One client process: `python -m loadtest.soak.client ORDER`, where ORDER is JSON. It uses HTTP only, and no Django.

A careful caller repeats a request with the same key until it has an answer, and records one operation. A careless one
takes a new key for each try, and records each try. Each completed posting is one byte on standard output. On SIGTERM
the client finishes what it has begun and ends with exit code 0. If a caller fails, the others begin nothing more.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

from ledger.reconcile import ClientOutcome
from loadtest.history.journal import Journal
from loadtest.soak.link import KeptConnection

PATIENCE = 60.0  # seconds until a caller gives up an operation
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
BUSY = 503


class Caller:
    """One thread that posts to one book, one posting after the other."""

    def __init__(self, order: dict[str, Any], book: dict[str, Any], seat: int, journal: Journal) -> None:
        self.order, self.book, self.journal = order, book, journal
        self.name = f"client-{os.getpid()}:caller-{seat}"
        self.intents = (f"{book['name']}-{os.getpid()}-{seat}-{n}" for n in count())
        self.chance = random.Random(f"{order['seed']}:{book['name']}:{order['number']}:{seat}")  # noqa: S311
        self.link = KeptConnection(order["host"], order["port"])
        self.path = f"/api/books/{book['id']}/postings"
        self.counts: Counter[str] = Counter()
        self.asked = 0

    def run(self, over: threading.Event) -> None:
        while not over.is_set():
            account = f"A{self.chance.randrange(self.order['accounts']) + 1:04d}"
            legs = ((account, self.chance.randint(1, 10_000)),)
            (self.careful if self.book["careful"] else self.careless)(next(self.intents), legs)
            os.write(1, b".")

    def careful(self, intent: str, legs: Any) -> None:
        """One operation with one key, repeated until there is an answer."""
        self.journal.invoke(intent, legs, self.name)
        told: dict[str, Any] = {}
        doubt = False
        for tries, (outcome, said) in enumerate(self.tries(lambda _: intent, legs)):
            told = {"retries": tries, "error": told.get("error", "")}
            if outcome is not ClientOutcome.OK:
                told["error"] = str(said["detail"])
            self.counts["replayed"] += bool(said.get("replayed"))
            doubt |= outcome is ClientOutcome.INFO
        if doubt and outcome is ClientOutcome.FAIL:  # this try was not applied, but an earlier one may be
            outcome = ClientOutcome.INFO
        self.journal.complete(intent, outcome, **told)

    def careless(self, intent: str, legs: Any) -> None:
        """One operation with a new key for each try."""

        def key(number: int) -> str:
            self.journal.invoke(f"{intent}.{number}", legs, self.name)
            return f"{intent}.{number}"

        for number, (outcome, said) in enumerate(self.tries(key, legs)):
            self.journal.complete(f"{intent}.{number}", outcome, error=str(said.get("detail", "")))

    def tries(self, key: Callable[[int], str], legs: Any) -> Any:
        """Yield the outcome of each try, until one has a final answer or patience ends."""
        body = {"account": legs[0][0], "amount": legs[0][1]}
        self.asked += 1
        # The second posting already, so that a slow client loses a reply too.
        to_lose = bool(self.order["drop"]) and self.asked % self.order["drop"] == 2
        end, pause = time.monotonic() + PATIENCE, FIRST_PAUSE
        for number in count():
            outcome, said = self.link.post(self.path, body, key(number), drop=to_lose)
            if said.get("dropped"):
                self.counts["dropped"] += 1
                to_lose = False
            yield outcome, said
            again = outcome is ClientOutcome.INFO or said.get("status") == BUSY
            if not again or time.monotonic() > end:
                return
            time.sleep(pause * self.chance.uniform(0.5, 1.5))
            pause = min(2 * pause, LONGEST_PAUSE)


def main() -> None:
    order = json.loads(sys.argv[1])
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    callers = []
    for book in order["books"]:
        journal = Journal(book["folder"])
        callers += [Caller(order, book, seat, journal) for seat in range(order["callers"])]

    def call(caller: Caller) -> None:
        try:
            caller.run(over)
        finally:
            over.set()  # if `over` was not set, this caller has failed

    with ThreadPoolExecutor(len(callers)) as pool:
        list(pool.map(call, callers))  # raises the error of a caller
    for name in {each.book["name"] for each in callers}:
        counts = sum((each.counts for each in callers if each.book["name"] == name), Counter())
        folder = next(each.book["folder"] for each in callers if each.book["name"] == name)
        half = Path(folder, f"{os.getpid()}.counts.half")
        half.write_text(json.dumps(counts))
        half.rename(half.with_suffix(".json"))


if __name__ == "__main__":
    main()
