"""Between the moment at which a command looks and the one at which it locks its first row.

    A: UPDATE total SET sum = (SELECT sum(n) FROM item)      its snapshot is taken, and shows no item of B's
    B: INSERT INTO item …; UPDATE total …                    commits both
    A:                                                       locks the row, and writes what it has seen: B's is lost

A trigger of each table makes such a command wait, before its first row, for a lock that the explorer holds. A function
waits there before its first write. Of a SELECT … FOR UPDATE that also looks elsewhere, only that it was seen is noted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psycopg.pq import ExecStatus

from lost_update_lab.model.errors import LOOKS_BY_ITSELF, Broken
from lost_update_lab.servers.compound import Compound, looks_elsewhere
from lost_update_lab.servers.postgres.locks import Edges
from lost_update_lab.telling.narrative import shortened

#: the first half of the name of an advisory lock; the other half is the session's process id
_LOCK = 1_129_270_867
NAME = "explorer_looks"
UNMET = "PostgreSQL looks at rows in a SELECT and locks others later, and no schedule comes between"
_TABLES = """
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'p') AND NOT relispartition AND nspname !~ '^(pg_|explorer|information_schema)'
"""
_MAKE = f"""
CREATE SCHEMA IF NOT EXISTS explorer;
CREATE OR REPLACE FUNCTION explorer.looks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_catalog.pg_advisory_lock_shared({_LOCK}, pg_catalog.pg_backend_pid());
    PERFORM pg_catalog.pg_advisory_unlock_shared({_LOCK}, pg_catalog.pg_backend_pid());
    RETURN NULL;
END $$;
DO $$ DECLARE place regclass; BEGIN
    FOR place IN SELECT c.oid::regclass {_TABLES} LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER {NAME} BEFORE INSERT OR UPDATE OR DELETE ON %s '
            'FOR EACH STATEMENT EXECUTE FUNCTION explorer.looks()', place);
    END LOOP;
END $$;
"""
#: first of all, whoever is held still goes on: a session that its client has left, as the search ended
_DROP = """
SELECT pg_catalog.pg_advisory_unlock_all();
DROP FUNCTION IF EXISTS explorer.looks() CASCADE;
"""


class Looks:
    """`admin`: the explorer's own session. `blockers_of`: asks the server which sessions block these process ids."""

    def __init__(self, admin: Any, blockers_of: Callable[[list[int]], Edges]) -> None:
        self.admin, self._blockers_of = admin, blockers_of
        self.made = False
        #: a SELECT between whose look and whose lock others would have to come. "": none was seen
        self.unmet = ""

    def make(self, wanted: bool) -> None:
        """The triggers, if they are `wanted`; between two runs, when no session has locked anything."""
        if wanted and not self.made:
            self._run(_MAKE)
            self.made = True

    def drop(self) -> None:
        if self.made:
            self._run(_DROP)
            self.made = False

    def begins(self, connection: Any, text: str, compound: Compound) -> None:
        """This command is about to be sent. No trigger hears of a SELECT."""
        if compound.watched and not self.unmet and looks_elsewhere(text):
            self.unmet = text
        if compound.looks_first(text):
            self.hold(connection)

    def unexplored(self) -> Broken | None:
        return Broken(f"{UNMET} ({shortened(self.unmet, 80)})", LOOKS_BY_ITSELF) if self.unmet else None

    def hold(self, connection: Any) -> None:
        """The next command of this session waits once it has looked."""
        if not self.made:
            return
        self._run(f"SELECT pg_advisory_lock({_LOCK}, {connection.info.backend_pid})")
        connection.explorer_held = True

    def holds(self, connection: Any) -> bool:
        """Is it held?"""
        return bool(getattr(connection, "explorer_held", False))

    def waits(self, connection: Any) -> bool:
        """Has its command looked, and does it wait for nothing but this?"""
        if not self.holds(connection):
            return False
        pid = connection.info.backend_pid
        return self._blockers_of([pid])[pid] == {self.admin.info.backend_pid}

    def let_go(self, connection: Any) -> None:
        """It goes on. Does nothing to a session that is not held."""
        if self.holds(connection):
            connection.explorer_held = False
            self._run(f"SELECT pg_advisory_unlock({_LOCK}, {connection.info.backend_pid})")

    def _run(self, text: str) -> None:
        done = self.admin.pgconn.exec_(text.encode())
        if done.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
            raise RuntimeError(f"between a look and a lock: {done.error_message.decode(errors='replace')}")
