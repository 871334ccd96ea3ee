"""Runs in a process of its own, so that its peak memory is its own: `python -m loadtest.bench.reconcile_alone BOOK`.

Prints seconds, growth of the peak memory in MiB, and whether the books balance, as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time

import django

from ledger.addresses import BASE_DIR

KIB = 2**10


def measure(book: object) -> tuple[float, float, bool]:
    """Start such a process for `book` and return what it says. Raises subprocess.CalledProcessError."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(book)],
        cwd=BASE_DIR,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    seconds, mebibytes, right = json.loads(done.stdout)
    return seconds, mebibytes, right


def _peak() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / KIB / (KIB if sys.platform == "darwin" else 1)


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ledger.settings")
    django.setup()
    from ledger.models import Book
    from ledger.reconciliation import books_of

    book = Book.objects.get(pk=sys.argv[1])
    before, started = _peak(), time.perf_counter()
    books = books_of(book)
    print(json.dumps([time.perf_counter() - started, _peak() - before, books.right]))


if __name__ == "__main__":
    main()
