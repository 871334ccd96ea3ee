"""The two ways to import: line by line with the book's strategy, or set-based.

    line by line   each line is a posting of its own: lock, read, compute, write, commit
    set-based      a chunk of lines is one transaction: the accounts are locked once, and all lines are written as one
                   stream (set_based.py)

A set-based import locks the accounts' rows, so it shares a book only with a strategy that such a lock keeps out.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import DatabaseError

from ledger.imports.dealing import BulkLine
from ledger.imports.set_based import post_lines
from ledger.models import Book, Entry, ImportLine, ImportRun
from ledger.posting import Busy
from ledger.stores import KeyTaken
from ledger.strategies import find, known
from ledger.strategies.sql import START_AGAIN, code_of

Way = ImportRun.Way
#: the strategy of every other posting to a comparison's book during a set-based import
SET_BASED_UNDER = "select-for-update"
#: lines in one transaction: enough to make the commit cheap, few enough to free the accounts soon
SET_BASED_LINES = 10_000


def fitting() -> list[str]:
    """Return the strategies to whose books a set-based import can post."""
    return [slug for slug, kind in known().items() if vars(kind).get("row_lock_excludes", False)]


def check(way: str, book: Book) -> None:
    """Raise ValueError if lines cannot be posted to `book` in this way."""
    if way == Way.LINE_BY_LINE:
        return
    if book.store != "postgres" or not vars(find(book.strategy)).get("row_lock_excludes", False):
        raise ValueError(
            f"a set-based import locks rows, and that does not keep out {book.strategy} on {book.store}:"
            f" import line by line, or into a book on postgres under one of {', '.join(fitting())}"
        )


def post_set_based(book: Book, lines: Sequence[ImportLine]) -> dict[str, Entry]:
    """Post the lines in one transaction and return the entry of each key. Keys that were posted before count once.

    Raises Refused and KeyReused because of a single line, and no line is applied then. Raises Busy: certainly not
    applied, try again.
    """
    try:
        post_lines(book, [BulkLine(line.key, line.account, line.amount or 0) for line in lines])
    except KeyTaken as error:  # another session is posting one of the lines right now
        raise Busy(str(error)) from error
    except DatabaseError as error:
        if code_of(error) in START_AGAIN:
            raise Busy(f"this import and another program deadlocked: {error}") from error
        raise
    keys = [line.key for line in lines]
    return {entry.key: entry for entry in Entry.objects.filter(book=book, key__in=keys)}
