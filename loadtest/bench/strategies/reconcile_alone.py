"""A process of its own has a peak memory of its own: `python -m loadtest.bench.strategies.reconcile_alone BOOK`.

Prints seconds, growth of the peak memory in MiB, and whether the books balance, as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

import django
import psutil

from ledger.addresses import BASE_DIR
from loadtest.bench.children import ChildFailed

MIB = 2**20


def measure(book: object) -> tuple[float, float, bool]:
    """Start such a process for `book` and return what it says. Raises ChildFailed."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(book)],
        cwd=BASE_DIR,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ChildFailed((done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1])
    seconds, mebibytes, right = json.loads(done.stdout)
    return seconds, mebibytes, right


class Peak(threading.Thread):
    """Looks at this process's memory every 10 ms. Not getrusage: some sandboxes never move its ru_maxrss."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._process, self._over = psutil.Process(), threading.Event()
        self.first = self.most = self._process.memory_info().rss

    def run(self) -> None:
        while not self._over.wait(0.01):
            self.most = max(self.most, self._process.memory_info().rss)

    def grown(self) -> float:
        """End, and return MiB above the start."""
        self._over.set()
        self.join()
        return (self.most - self.first) / MIB


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ledger.settings")
    django.setup()
    from ledger.models import Book
    from ledger.reconcile_stored import books_of

    book = Book.objects.get(pk=sys.argv[1])
    peak = Peak()
    peak.start()
    started = time.perf_counter()
    books = books_of(book)
    print(json.dumps([time.perf_counter() - started, peak.grown(), books.right]))


if __name__ == "__main__":
    main()
