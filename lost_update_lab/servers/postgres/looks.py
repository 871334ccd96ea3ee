"""Between the moment at which a command looks and the one at which it locks its first row.

    A: UPDATE total SET sum = (SELECT sum(n) FROM item)      its snapshot is taken, and shows no item of B's
    B: INSERT INTO item …; UPDATE total …                    commits both
    A:                                                       locks the row, and writes what it has seen: B's is lost

A trigger of each table makes such a command wait, before its first row, for a lock that the explorer holds. A function
waits for it before each of its statements (function_stops.py), a command with several rows between these
(between_rows.py). Of a SELECT … FOR UPDATE that also looks elsewhere, only that it was seen is noted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from lost_update_lab.model.errors import (
    LIMITS_OUTSIDE,
    LOOK_AGAIN,
    LOOKS_BY_ITSELF,
    STATEMENTS_APART,
    Broken,
)
from lost_update_lab.servers.compound import Compound, Unexplored, looks_elsewhere, statement_of, tries_names
from lost_update_lab.servers.draws import INSERT
from lost_update_lab.servers.postgres.between_rows import MOST, BetweenRows
from lost_update_lab.servers.postgres.function_stops import LOCKED_ROW, NEW_ROW, FunctionStops, Reached
from lost_update_lab.servers.postgres.locks import Edges
from lost_update_lab.snapshot.catalogue import OF_THE_USER
from lost_update_lab.snapshot.other_sessions import cleaned_up, is_locked_out, keeps_a_lock
from lost_update_lab.telling.narrative import shortened

#: the first half of the names of two advisory locks; the other half is the session's process id. A stop is passed like
#: a canal lock, with one gate closed at any time: else a quick session is at its next stop before the first one is shut
_LOCK, _BEHIND = 1_129_270_867, 1_129_270_868
#: one more, which the session tries: held, its command stops between its rows, too
_ROWS = 1_129_270_869
NAME = "explorer_looks"
AFTER_ROW = "others can come before its next row, after number"
UNMET = "PostgreSQL looks at rows in a SELECT and locks others later, and no schedule comes between"
WITHOUT_STOPS = (
    "the explorer cannot write its stops into a function, and no schedule comes between its statements"
)
TRIES = (
    "a SELECT tries an advisory lock for a row, and no schedule comes between its look at the row and that"
)
CATCHES = "a function goes on after an error that the explorer cannot let it have:"
LIMITS = "a function sets a time limit of its own, which would end by the server's clock"
#: makes a trigger of each table
_ON_EACH = f"""
DO $$ DECLARE place regclass; BEGIN
    FOR place IN SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
        WHERE relkind IN ('r', 'p') AND NOT relispartition AND {OF_THE_USER} LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER {{name}} BEFORE INSERT OR UPDATE OR DELETE ON %s '
            'FOR EACH {{each}} EXECUTE FUNCTION {{function}}()', place);
    END LOOP;
END $$;
"""  # noqa: S608  (names of our own)
#: explorer.stop(place, plain): the number of a place in a function; or 0, of a trigger of these. And the table to which
#: the next statement writes, if it looks at no other one: there its trigger need not stop once more
_MAKE = f"""
CREATE SCHEMA IF NOT EXISTS explorer;
GRANT USAGE ON SCHEMA explorer TO PUBLIC;
CREATE OR REPLACE FUNCTION explorer.stop(place int, plain text) RETURNS bool LANGUAGE plpgsql
    SET lock_timeout = 0 AS $$
DECLARE named text := pg_catalog.current_setting('application_name'); BEGIN
    PERFORM pg_catalog.set_config('application_name', '{NAME} ' || place, true);
    PERFORM pg_catalog.pg_advisory_lock_shared({_LOCK}, pg_catalog.pg_backend_pid());
    PERFORM pg_catalog.pg_advisory_unlock_shared({_LOCK}, pg_catalog.pg_backend_pid());
    PERFORM pg_catalog.pg_advisory_lock_shared({_BEHIND}, pg_catalog.pg_backend_pid());
    PERFORM pg_catalog.pg_advisory_unlock_shared({_BEHIND}, pg_catalog.pg_backend_pid());
    PERFORM pg_catalog.set_config('application_name', named, true);
    PERFORM pg_catalog.set_config('explorer.plain', plain, true);
    RETURN false;
END $$;
GRANT EXECUTE ON FUNCTION explorer.stop(int, text) TO PUBLIC;
CREATE OR REPLACE FUNCTION explorer.looks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF pg_catalog.current_setting('explorer.plain', true) = tg_table_name THEN
        PERFORM pg_catalog.set_config('explorer.plain', '', true);
    ELSE
        PERFORM explorer.stop(0, '');
    END IF;
    RETURN NULL;
END $$;
{_ON_EACH.format(name=NAME, each="STATEMENT", function="explorer.looks")}
"""
#: a call, and nothing that would look before the function does
_CALLS_ONLY = re.compile(
    r"\s*(?:SELECT(?:\s+\*\s+FROM)?|CALL)\b(?!.*\b(?:FROM|SELECT|VALUES|TABLE|WITH)\b)",
    re.IGNORECASE | re.DOTALL,
)
#: a trigger for each row: an UPDATE or a DELETE has locked that row then; an INSERT has not inserted it
_MAKE_ROWS = f"""
CREATE OR REPLACE FUNCTION explorer.rows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF pg_catalog.pg_try_advisory_lock_shared({_ROWS}, pg_catalog.pg_backend_pid()) THEN
        PERFORM pg_catalog.pg_advisory_unlock_shared({_ROWS}, pg_catalog.pg_backend_pid());
    ELSE
        PERFORM explorer.stop(CASE tg_op WHEN 'INSERT' THEN {NEW_ROW} ELSE {LOCKED_ROW} END, '');
    END IF;
    IF tg_op = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
END $$;
{_ON_EACH.format(name=f"{NAME}_rows", each="ROW", function="explorer.rows")}
"""
_PLACE = "SELECT application_name FROM pg_stat_get_activity({})"
#: first of all, whoever is held still goes on: a session that its client has left, as the search ended
_DROP = """
SELECT pg_catalog.pg_advisory_unlock_all();
DROP FUNCTION IF EXISTS explorer.looks() CASCADE;
DROP FUNCTION IF EXISTS explorer.rows() CASCADE;
DROP FUNCTION IF EXISTS explorer.stop(int, text);
"""


class Looks:
    """`admin`: the explorer's own session. `blockers_of`: asks the server which sessions block these process ids.
    `watched`: as in Compound."""

    def __init__(self, admin: Any, blockers_of: Callable[[list[int]], Edges], watched: bool) -> None:
        self.admin, self._blockers_of, self._watched = admin, blockers_of, watched
        self._functions = FunctionStops(self._rows, self._run)
        self.rows = BetweenRows(self._rows)
        self.made = self._rows_made = False
        self.unexplored = Unexplored()

    def make(self, wanted: bool) -> None:
        """The triggers, if they are `wanted`; between two runs, when no session has locked anything."""
        if (wanted or self.rows.stopping) and not self.made:
            self._run(_MAKE)
            self._functions.make()
            self.made = True
        if self.rows.stopping and not self._rows_made:
            self._run(_MAKE_ROWS)
            self._rows_made = True

    def drop(self) -> None:
        """Ends a session of nobody's that is still inside of a transaction, if a trigger could not be dropped."""
        if self.made:
            self._functions.drop()
            cleaned_up(lambda: self._run(_DROP), self._run)
            self.made = self._rows_made = False

    def begins(self, connection: Any, text: str, compound: Compound) -> None:
        """This command is about to be sent. No trigger hears of a SELECT."""
        reached, unexplored = self._reached(text), self.unexplored
        if not unexplored.looks and (reached.elsewhere or (compound.watched and looks_elsewhere(text))):
            unexplored.looks = Broken(f"{UNMET} ({shortened(text, 80)})", LOOKS_BY_ITSELF)
        if compound.watched and tries_names(text):
            unexplored.function = Broken(f"{TRIES} ({shortened(text, 80)})", LOOK_AGAIN)
        if reached.without:
            unexplored.function = Broken(
                f"{WITHOUT_STOPS} ({shortened(reached.without, 80)})", STATEMENTS_APART
            )
        looks, rows = compound.looks_first(text), self.rows.stops(connection.explorer_who[:2], text)
        if self.made and (looks or rows):
            self.hold(connection, looks, rows)

    def hold(self, connection: Any, looks: bool, rows: bool) -> None:
        """The next command of this session waits once it has looked, or between its rows."""
        connection.explorer_held = (_LOCK, _ROWS) if rows else (_LOCK,)
        connection.explorer_stops = Counter({"looks": looks})
        self._each("pg_advisory_lock", connection.explorer_held, connection)

    def _reached(self, text: str) -> Reached:
        return self._functions.reached(text) if self.made else Reached()

    def holds(self, connection: Any) -> bool:
        """Is it held?"""
        return bool(getattr(connection, "explorer_held", False))

    def waits(self, connection: Any) -> bool:
        """Has its command looked, and does it wait for nothing but this?"""
        if not self.holds(connection):
            return False
        pid = connection.info.backend_pid
        return self._blockers_of([pid])[pid] == {self.admin.info.backend_pid}

    def place(self, connection: Any, text: str) -> str | None:
        """Where it waits: in which function, before which statement; between which rows. "": before the first row of a
        command. None: where it makes no difference that others come."""
        [(found,)] = self._rows(_PLACE.format(connection.info.backend_pid))
        number = int(found.removeprefix(NAME)) if found.startswith(NAME) else 0
        if number in (NEW_ROW, LOCKED_ROW):
            return self._row(connection, text, number)
        place = self._functions.places[number]
        connection.explorer_stops["places"] += 1
        is_first = place.first and connection.explorer_stops["places"] == 1
        if is_first and _CALLS_ONLY.match(text) and self._reached(text).one:
            return None
        return place.told if place.told or connection.explorer_stops["looks"] else None

    def _row(self, connection: Any, text: str, number: int) -> str | None:
        """The first new row has nothing before it. What an INSERT does in place of a new row is over before the next
        one."""
        if number == LOCKED_ROW and INSERT.match(statement_of(text)):
            return None
        connection.explorer_stops["rows"] += 1
        rows = connection.explorer_stops["rows"] - (number == NEW_ROW)
        if rows > MOST:
            connection.explorer_held = (_LOCK,)
            self._each("pg_advisory_unlock", (_ROWS,), connection)
            return None
        return f"{AFTER_ROW} {rows}" if rows else None

    def is_heard(self, text: str, condition: str) -> None:
        """The server is about to give up this command. Raises Broken if a function behind it would go on: the explorer
        cancels the command, which no EXCEPTION clause catches."""
        if found := [each.signature for each in self._reached(text).functions if each.catches(condition)]:
            raise Broken(f"{CATCHES} {condition.lower()} ({found[0]})", STATEMENTS_APART)

    def limited(self, text: str) -> Broken | None:
        """Does a function behind this command set a time limit of its own?"""
        found = self._reached(text).limiting
        return Broken(f"{LIMITS} ({found})", LIMITS_OUTSIDE) if found else None

    def several(
        self, connection: Any, text: str, changed: int, returned: int, compound: Compound, reads: bool
    ) -> bool:
        """The command has `changed` so many rows, and `returned` so many. Do more commands stop between their rows from
        now on? `reads`: it only does that."""
        if reads or not self._watched:
            return False
        calls = compound.looks_first(text)
        return self.rows.has_run(connection.explorer_who[:2], text, changed, returned, calls)

    def goes_on(self, connection: Any) -> None:
        """It goes on, to where it stops next."""
        pid = connection.info.backend_pid
        lock, behind = f"{_LOCK}, {pid}", f"{_BEHIND}, {pid}"
        self._run(
            f"SELECT pg_advisory_lock({behind}), pg_advisory_unlock({lock}), "
            f"pg_advisory_lock({lock}), pg_advisory_unlock({behind})"
        )

    def let_go(self, connection: Any) -> None:
        """It goes on to its end. Does nothing to a session that is not held."""
        if self.holds(connection):
            held, connection.explorer_held = connection.explorer_held, ()
            self._each("pg_advisory_unlock", held, connection)

    def _each(self, function: str, locks: Sequence[int], connection: Any) -> None:
        """Take, or release, these locks of the session."""
        pid = connection.info.backend_pid
        self._run(f"SELECT {', '.join(f'{function}({lock}, {pid})' for lock in locks)}")

    def _rows(self, text: str) -> list[tuple[str, ...]]:
        found = self._run(text)
        columns = range(found.nfields)
        return [
            tuple((found.get_value(row, c) or b"").decode() for c in columns) for row in range(found.ntuples)
        ]

    def _run(self, text: str) -> PGresult:
        done: PGresult = self.admin.pgconn.exec_(text.encode())
        if is_locked_out(done):
            raise keeps_a_lock()
        if done.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
            raise RuntimeError(f"between a look and a lock: {done.error_message.decode(errors='replace')}")
        return done
