"""The order of writes, by the server: numbers of one sequence, drawn while the account's row is locked.

A posting draws its number in the INSERT itself, and a bulk load draws those of many lines at once. On PostgreSQL the
sequence advances in steps, so one draw is either one number for an entry or a block of numbers for as many lines
("hi/lo"):

    nextval  1       one entry          1
    nextval  8193    a block of lines   8193 … 16384
    nextval  16385   one entry          16385

A later draw always gives higher numbers, in either way.
"""

from __future__ import annotations

from typing import Any

from django.db.models import BigIntegerField, Func

ENTRY_SEQUENCE = "ledger_entry_seq"
#: how far a draw moves the sequence on PostgreSQL (migration 0016)
STEP = 8192


class NextEntry(Func):
    """The next number of the sequence: `nextval('…')` on PostgreSQL, `NEXT VALUE FOR …` on MariaDB."""

    template = f"nextval('{ENTRY_SEQUENCE}')"
    output_field = BigIntegerField()

    def as_mysql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return super().as_sql(compiler, connection, template=f"NEXT VALUE FOR {ENTRY_SEQUENCE}", **extra)


def blocks(cursor: Any, lines: int) -> list[int]:
    """Draw numbers for this many `lines`, on PostgreSQL. Returns the first number of each block of STEP."""
    cursor.execute(
        f"SELECT nextval('{ENTRY_SEQUENCE}') FROM generate_series(1, %s)",  # noqa: S608  (our own name)
        [-(-lines // STEP)],
    )
    return [first for (first,) in cursor.fetchall()]
