"""The owner of a book: one row with a lease by the database's own clock, and a number that grows with each owner.

The row says where the owner listens, and which secret its callers must send first. Both change with each owner. A user
who can read them can read and write the accounts anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection

from ledger.models import Book
from ledger.posting import worker

TAKE = """
INSERT INTO ledger_bookowner AS owner (book_id, fence, holder, until, address, secret)
VALUES (%(book)s, 1, %(holder)s, clock_timestamp() + make_interval(secs => %(lease)s), %(address)s, %(secret)s)
ON CONFLICT (book_id) DO UPDATE
SET fence = owner.fence + 1, holder = excluded.holder, until = excluded.until, address = excluded.address,
    secret = excluded.secret
WHERE owner.until < clock_timestamp()
RETURNING fence
"""
FIND = """
SELECT fence, address, secret, extract(epoch FROM until - clock_timestamp())::float8
FROM ledger_bookowner WHERE book_id = %(book)s
"""
RENEW = """
UPDATE ledger_bookowner SET until = clock_timestamp() + make_interval(secs => %(lease)s)
WHERE book_id = %(book)s AND fence = %(fence)s
"""
RELEASE = (
    "UPDATE ledger_bookowner SET until = clock_timestamp() WHERE book_id = %(book)s AND fence = %(fence)s"
)


@dataclass(frozen=True, slots=True)
class OwnerRow:
    """The row of a book's owner. `left`: the seconds until its lease ends; negative if it has ended."""

    fence: int
    address: str
    secret: str
    left: float


def take(book: Book, lease: float, address: str = "", secret: str = "") -> int | None:
    """Own `book` for `lease` seconds and return the fencing number, or None while another process owns it."""
    given: dict[str, Any] = {
        "book": book.pk,
        "holder": worker(),
        "lease": lease,
        "address": address,
        "secret": secret,
    }
    with connection.cursor() as cursor:
        cursor.execute(TAKE, given)
        row = cursor.fetchone()
    return row[0] if row else None


def find(book: Book) -> OwnerRow | None:
    """Return the last owner of `book`, who may still own it. None: it never had one."""
    with connection.cursor() as cursor:
        cursor.execute(FIND, {"book": book.pk})
        row = cursor.fetchone()
    return OwnerRow(*row) if row else None


def renew(book: Book, fence: int, lease: float) -> bool:
    """Restart the lease. False: there is a newer owner."""
    with connection.cursor() as cursor:
        cursor.execute(RENEW, {"book": book.pk, "fence": fence, "lease": lease})
        return bool(cursor.rowcount == 1)


def release(book: Book, fence: int) -> None:
    """End the lease now, if this process still holds it, so that the next owner need not wait."""
    with connection.cursor() as cursor:
        cursor.execute(RELEASE, {"book": book.pk, "fence": fence})
