"""database-restart: immediate shutdown of PostgreSQL while one worker is inside, and its recovery from the WAL.

Proof        another start time of the server (`pg_postmaster_start_time`).
Cannot touch balances outside SQL.
Cleans up    the server runs again before anybody goes on. No other cell runs meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection, connections

from loadtest.faults import touch
from loadtest.faults.base import Adversary
from loadtest.faults.scene import EASY_LEASE
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene import Scene


class DatabaseRestart(Adversary):
    slug = "database-restart"
    word = Hazard.DATABASE_RESTART
    alone = True
    lease = EASY_LEASE

    def not_applicable(self, strategy: str) -> str | None:
        return None if touch.store_of(strategy) == "postgres" else "its balances are not in SQL"

    def strike(self, scene: Scene) -> None:
        if not (victim := scene.victim()):
            return
        held, before = scene.held(victim), _started()
        connections.close_all()
        scene.site.postgres.stop_immediately()
        scene.site.postgres.start()
        after = _started()
        if after != before:
            scene.prove(f"PostgreSQL of {before} is now that of {after}; before: {held}")
        scene.go_on(victim)
        scene.wait([victim], 5)
        scene.rush()


def _started() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_postmaster_start_time()")
        return str(cursor.fetchone()[0].time())
