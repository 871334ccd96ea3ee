"""Who owns a book: one row, a lease by the database's own clock, and a number that grows with each owner."""

from __future__ import annotations

from django.db import connection

from ledger.models import Book
from ledger.posting import worker

TAKE = """
INSERT INTO ledger_bookowner AS owner (book_id, fence, holder, until)
VALUES (%(book)s, 1, %(holder)s, clock_timestamp() + make_interval(secs => %(lease)s))
ON CONFLICT (book_id) DO UPDATE
SET fence = owner.fence + 1, holder = excluded.holder, until = excluded.until
WHERE owner.until < clock_timestamp()
RETURNING fence
"""
RENEW = """
UPDATE ledger_bookowner SET until = clock_timestamp() + make_interval(secs => %(lease)s)
WHERE book_id = %(book)s AND fence = %(fence)s
"""
RELEASE = (
    "UPDATE ledger_bookowner SET until = clock_timestamp() WHERE book_id = %(book)s AND fence = %(fence)s"
)


def take(book: Book, lease: float) -> int | None:
    """Own `book` for `lease` seconds; return the fencing number, or None while somebody else owns it."""
    with connection.cursor() as cursor:
        cursor.execute(TAKE, {"book": book.pk, "holder": worker(), "lease": lease})
        row = cursor.fetchone()
    return row[0] if row else None


def renew(book: Book, fence: int, lease: float) -> bool:
    """Start the lease anew. False: there is a newer owner."""
    with connection.cursor() as cursor:
        cursor.execute(RENEW, {"book": book.pk, "fence": fence, "lease": lease})
        return cursor.rowcount == 1


def release(book: Book, fence: int) -> None:
    """End the lease now, if it is still ours: the next owner need not wait for it."""
    with connection.cursor() as cursor:
        cursor.execute(RELEASE, {"book": book.pk, "fence": fence})
