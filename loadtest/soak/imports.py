"""The batch imports of a soak: files into each book while everything is killed, and a check that each is complete."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from ledger.imports.upload import Upload, start_import
from ledger.models import Book, Entry, ImportLine, ImportRun
from loadtest.soak.patience import patiently
from loadtest.verdict.laws import Breach, count_law
from loadtest.verdict.words import Word

LANES = 2
#: seconds after the last posting within which every import must finish, without human help
PATIENCE = 180.0


class ImportedFiles:
    """The imported files: for each book their number, and the keys of their lines."""

    def __init__(self, lines: int, accounts: int, seed: int) -> None:
        self.lines, self.accounts = lines, accounts
        self.chance = random.Random(seed)  # noqa: S311  (not a secret)
        self.keys: dict[UUID, list[str]] = defaultdict(list)
        self.counts: Counter[UUID] = Counter()
        self.count = 0

    def start(self, books: Sequence[Book]) -> None:
        """Import one more file into each book. A second start of the same file is recognised and posts nothing."""
        self.count += 1
        rows = ["seller,account,amount,reference"]
        for number in range(1, self.lines + 1):
            account = f"A{self.chance.randrange(self.accounts) + 1:04d}"
            rows.append(f"soak,{account},{self.chance.randint(1, 999)},f{self.count}-{number}")
        upload = Upload(f"soak-{self.count}.csv", ("\n".join(rows) + "\n").encode())
        for book in books:
            self.keys[book.pk] += [line.key for line in upload.parsed.good]
            self.counts[book.pk] += 1
            patiently(partial(start_import, book, [upload], workers=LANES))

    def breaches(self, book: Book) -> list[Breach]:
        """Return what is wrong: every line must be posted, and be in the books once."""
        keys = self.keys[book.pk]
        lines = dict(ImportLine.objects.filter(book=book, key__in=keys).values_list("key", "state"))
        left = Counter(lines.get(key, "missing") for key in keys)
        posted = left.pop("posted", 0)
        found = Counter(Entry.objects.filter(book=book, key__in=keys).values_list("key", flat=True))
        breaches = count_law({key: found[key] for key in keys if lines.get(key) == "posted"})
        if left:
            told = ", ".join(f"{number} {state}" for state, number in sorted(left.items()))
            breaches.append(Breach(Word.STALLED, f"imports incomplete: {posted} lines posted, {told}"))
        return breaches

    def facts(self, book: Book) -> dict[str, Any]:
        runs = ImportRun.objects.filter(book=book)
        scanned = ImportLine.objects.filter(book=book, key__startswith="scan/", state="posted").count()
        return {
            "imports": {
                "files": self.counts[book.pk],
                "lines": len(self.keys[book.pk]),
                "finished": runs.exclude(finished=None).count(),
                "scheduled_scan_postings": scanned,
            }
        }


def finished(books: Sequence[Book], patience: float = PATIENCE) -> bool:
    """Wait until every import into `books` is finished. Returns False if some are not."""
    deadline = time.monotonic() + patience
    open_runs = ImportRun.objects.filter(book__in=books, finished=None)
    while patiently(open_runs.exists):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
