"""How many deadlocks the database has broken so far. A trial's share is the difference between two readings."""

from __future__ import annotations

from django.db import connections

from ledger.stores.sql import ALIASES

SQL = {
    "postgresql": "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
    "mysql": "SELECT variable_value FROM information_schema.global_status"
    " WHERE variable_name = 'INNODB_DEADLOCKS'",
}


def deadlocks(store: str) -> int:
    """Return the count of the database that keeps `store`, or 0 for a store that has no deadlocks.

    PostgreSQL's sessions report with a delay, or when they end: read the count after the web server was recycled.
    """
    if store not in ALIASES:
        return 0
    connection = connections[ALIASES[store]]
    with connection.cursor() as cursor:
        cursor.execute(SQL[connection.vendor])
        row = cursor.fetchone()
    return int(row[0]) if row else 0
