"""The processes that work for a book now. A strike on another process of the same kind would not touch the book."""

from __future__ import annotations

from collections import defaultdict

from django.db.models.functions import Now

from ledger.models import Book, Entry, ImportChunk, ImportLine, ImportRun
from loadtest.soak.imports import ImportedFiles
from loadtest.soak.patience import patiently
from loadtest.soak.plan import BACKGROUND

#: how many of a book's last entries are searched for the processes that post to it
LAST = 40
WORKING, WAITING = ImportChunk.State.WORKING, ImportLine.State.WAITING


def at_work(kind: str, book: Book, files: ImportedFiles) -> set[int]:
    """Return the ids of the processes that work for `book`: those that hold lines of an import, or that wrote its last
    entries. If no import is under way, one is started."""
    if kind == BACKGROUND:
        if not patiently(ImportRun.objects.filter(book=book, finished=None).exists):
            files.start([book])
        held = ImportChunk.objects.filter(batch__book=book, state=WORKING, lease_until__gt=Now())
        names = patiently(lambda: list(held.values_list("worker", flat=True)))
    else:
        entries = Entry.objects.filter(book=book).order_by("-written_at")
        names = patiently(lambda: list(entries.values_list("worker", flat=True)[:LAST]))
    return {int(name.split(":")[1]) for name in names}


def in_the_hands_of(pid: int) -> dict[str, tuple[str, ...]]:
    """Return book → keys of the lines that this worker has claimed but not reported. For a dead worker this is known
    until its lease ends and another worker claims the lines."""
    lines = ImportLine.objects.filter(
        state=WAITING, chunk__state=WORKING, chunk__worker__contains=f":{pid}:"
    ).values_list("book_id", "key")
    held: dict[str, list[str]] = defaultdict(list)
    for book, key in patiently(lambda: list(lines)):
        held[str(book)].append(key)
    return {book: tuple(keys) for book, keys in held.items()}


def has_in_hands(book: str, pid: int) -> bool:
    """Does this stopped worker hold lines of `book`? It checks twice: a COMMIT may have been under way at the stop."""
    return all(book in in_the_hands_of(pid) for _ in range(2))
