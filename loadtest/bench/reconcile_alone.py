"""Reconcile in a process of its own, which has its own peak memory: `python -m loadtest.bench.reconcile_alone BOOK`.

It prints figures as JSON: the seconds, their ratio to merely reading the same rows, the growth of the peak memory in
MiB, and whether the books balance.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque

import django
import psutil

from ledger.addresses import BASE_DIR
from loadtest.bench.children import ChildFailed
from loadtest.bench.measured import Row

MIB = 2**20


def measure(book: object) -> Row:
    """Start such a process for `book` and return its figures. Raises ChildFailed."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(book)],
        cwd=BASE_DIR,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ChildFailed((done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1])
    figures: Row = json.loads(done.stdout)
    return figures


class Peak(threading.Thread):
    """Samples this process's memory every 10 ms. It does not use getrusage: some sandboxes never update ru_maxrss."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._process, self._over = psutil.Process(), threading.Event()
        self.first = self.most = self._process.memory_info().rss

    def run(self) -> None:
        while not self._over.wait(0.01):
            self.most = max(self.most, self._process.memory_info().rss)

    def grown(self) -> float:
        """End the thread, and return the MiB above the start."""
        self._over.set()
        self.join()
        return (self.most - self.first) / MIB


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ledger.settings")
    django.setup()
    from ledger.models import Book
    from ledger.reconcile_stored import books_of
    from ledger.stores import store_of

    book = Book.objects.get(pk=sys.argv[1])
    store, started = store_of(book), time.perf_counter()
    with store.at_one_moment():
        for _, rows in store.everything():
            deque(rows, maxlen=0)
    reading = time.perf_counter() - started
    peak = Peak()
    peak.start()
    started = time.perf_counter()
    books = books_of(book)
    seconds = time.perf_counter() - started
    figures = {"seconds": seconds, "of_reading": seconds / reading, "memory_mib": peak.grown()}
    print(json.dumps(figures | {"right": books.right}))


if __name__ == "__main__":
    main()
