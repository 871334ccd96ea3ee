"""database-restart: immediate shutdown of PostgreSQL while workers are inside, and its recovery from the WAL.

Proof        another start time of the server (`pg_postmaster_start_time`).
Cannot touch balances outside PostgreSQL.
Cleans up    the server runs again before any worker continues. No other cell runs meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection, connections

from loadtest.faults.hazards.adversary import Party
from loadtest.faults.scene.scene import EASY_LEASE
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.site import Site


class DatabaseRestart(Party):
    slug = "database-restart"
    word = Hazard.DATABASE_RESTART
    alone = True
    party = 32
    lease = EASY_LEASE
    cuts_sql = True

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return dependencies.no_postgres(store)

    def event(self, site: Site) -> str:
        before = _started()
        connections.close_all()
        site.postgres.stop_immediately()
        site.postgres.start()
        after = _started()
        return f"PostgreSQL of {before} is now that of {after}" if after != before else ""


def _started() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_postmaster_start_time()")
        return str(cursor.fetchone()[0].time())
