"""The order of writes, by the server: a number drawn by the INSERT itself, while the account's row is locked."""

from __future__ import annotations

from typing import Any

from django.db.models import BigIntegerField, Func

ENTRY_SEQUENCE = "ledger_entry_seq"


class NextEntry(Func):
    """The next number of the sequence: `nextval('…')` on PostgreSQL, `NEXT VALUE FOR …` on MariaDB."""

    template = f"nextval('{ENTRY_SEQUENCE}')"
    output_field = BigIntegerField()

    def as_mysql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return super().as_sql(compiler, connection, template=f"NEXT VALUE FOR {ENTRY_SEQUENCE}", **extra)
