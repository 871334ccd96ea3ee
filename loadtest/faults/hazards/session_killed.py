"""database-session-killed: an administrator ends the SQL session of the worker that is inside.

Proof        `pg_terminate_backend` returned true, and `pg_stat_activity` no longer has the session.
Cannot touch balances outside SQL; a worker that has no session at that moment.
Cleans up    the worker reconnects, as at the start of a request.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from django.db import connection

from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.scene.scene import EASY_LEASE
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene


class SessionKilled(Adversary):
    slug = "database-session-killed"
    word = Hazard.SESSION_KILLED
    lease = EASY_LEASE

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return dependencies.no_postgres(store)

    def strike(self, scene: Scene) -> None:
        if not (victim := scene.victim()):
            return
        session, held = (victim.inside or {}).get("session"), scene.held(victim)
        if session is None:
            scene.cannot = "the worker has no SQL session at that moment"
        else:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s)", [session])
                (said,) = cursor.fetchone()
                until = time.monotonic() + 5
                rows = 1
                while rows and time.monotonic() < until:
                    cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [session])
                    (rows,) = cursor.fetchone()
            if said and not rows:
                scene.fault(f"SQL session {session} terminated")
                scene.prove(f"session {session} terminated and gone from pg_stat_activity; before: {held}")
        scene.ahead(0.2)
        scene.go_on(victim)
