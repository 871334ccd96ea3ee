"""Which processes work for a book now. A strike on another one of their kind would not touch it."""

from __future__ import annotations

from collections import defaultdict

from django.db.models.functions import Now

from ledger.models import Book, Entry, ImportChunk, ImportLine, ImportRun
from loadtest.soak.imports import Files
from loadtest.soak.patience import patiently
from loadtest.soak.plan import BACKGROUND

#: so many of a book's last entries tell who posts to it
LAST = 40
WORKING, WAITING = ImportChunk.State.WORKING, ImportLine.State.WAITING


def at_work(kind: str, book: Book, files: Files) -> set[int]:
    """Return the ids of the processes that work for `book`: those that hold lines of an import, which is started if
    none is under way; or those that wrote its last entries."""
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
    """Return book → keys of the lines that this worker has claimed and not reported. Of a dead one it can be told
    until its lease is over and another worker claims them."""
    lines = ImportLine.objects.filter(
        state=WAITING, chunk__state=WORKING, chunk__worker__contains=f":{pid}:"
    ).values_list("book_id", "key")
    held: dict[str, list[str]] = defaultdict(list)
    for book, key in patiently(lambda: list(lines)):
        held[str(book)].append(key)
    return {book: tuple(keys) for book, keys in held.items()}


def has_in_hands(book: str, pid: int) -> bool:
    """Does this stopped worker hold lines of `book`? Asked twice: a COMMIT may have been under way when it stopped."""
    return all(book in in_the_hands_of(pid) for _ in range(2))
