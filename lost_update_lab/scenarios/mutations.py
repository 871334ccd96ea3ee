"""What protects an operation is removed, or moved, one piece at a time. Which piece does no schedule need?

Locks, transactions, ORDER BY and changes in place (`F()`) are mutated where the operations send them, by the line of
the user's code that sends them. Constraints are dropped in the database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql
from redis.connection import AbstractConnection

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates.patch import Patches
from lost_update_lab.model.errors import Broken
from lost_update_lab.runs.place import here
from lost_update_lab.scenarios.control import ADVISORY, ROWS, TABLE, UntilBroken
from lost_update_lab.scenarios.exploration import Opened
from lost_update_lab.scenarios.result import SURVIVES, UNDECIDED, Mutation, Tried
from lost_update_lab.scenarios.serial import SerialOrders
from lost_update_lab.subject.operations import BREACHES
from lost_update_lab.subject.scenario import Mistake
from lost_update_lab.telling.lines import own_line
from lost_update_lab.telling.narrative import shortened

LOCK, LATER, ATOMIC, ORDER, IN_PLACE, CONSTRAINT = (
    "without the lock",
    "with the lock after the read",
    "without the transaction",
    "without ORDER BY",
    "read and written instead of changed in place",
    "without the constraint",
)
#: sent in place of BEGIN
NOTHING = b"SELECT 1"
_ORDER = re.compile(
    r"\s+ORDER\s+BY\s+.+?(?=\s+(?:LIMIT|OFFSET|FETCH|FOR)\b|\s*\)|\s*;|\s*$)", re.IGNORECASE | re.DOTALL
)
_CHANGED = re.compile(
    r'\s*UPDATE\s+(?P<table>\S+)\s+SET\s+(?P<column>"?\w+"?)\s*=\s*(?P<value>[^,]*?\b(?P=column).*?)\s+(?P<where>WHERE\b.*)',
    re.IGNORECASE | re.DOTALL,
)
_CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), true FROM pg_constraint
WHERE conrelid = ANY(%(tables)s) AND contype IN ('u', 'c', 'x')
UNION ALL SELECT indrelid::regclass::text, indexrelid::regclass::text, pg_get_indexdef(indexrelid), false
FROM pg_index i WHERE indrelid = ANY(%(tables)s) AND indisunique AND NOT indisprimary
AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)
ORDER BY 1, 2
"""


@dataclass
class Mutator:
    """The gate that applies one mutation to each command that it `applies` to, and records all possible mutations."""

    wanted: Mutation | None = None
    applies: Callable[[], object] = here
    seen: dict[Mutation, None] = field(default_factory=dict)

    def install(self, patches: Patches) -> None:
        execute: Any = psycopg.Cursor.execute
        send: Any = AbstractConnection.send_command
        begin: Any = getattr(psycopg.Connection, driver.BEGIN)

        def executed(cursor: Any, query: Any, params: Any = None, **keywords: Any) -> Any:
            if not isinstance(query, str | bytes) or not self.applies():
                return execute(cursor, query, params, **keywords)
            text = query.decode() if isinstance(query, bytes) else query
            for kind, changed in self._changes(text, params):
                if self._is(kind, text):
                    return changed(lambda cur, q, p=params: execute(cur, q, p, **keywords), cursor)
            return execute(cursor, query, params, **keywords)

        def sent(connection: Any, *words: Any, **keywords: Any) -> Any:
            if self.applies() and words and str(words[0]).upper() == "SET":
                rest = [word for word in words if str(word).upper() not in ("NX", "B'NX'")]
                if len(rest) < len(words) and self._is(LOCK, "SET … NX"):
                    return send(connection, *rest, **keywords)
            return send(connection, *words, **keywords)

        def begun(connection: Any) -> bytes:
            return NOTHING if self.applies() and self._is(ATOMIC, "BEGIN") else begin(connection)

        patches.method(psycopg.Cursor, "execute", executed)
        patches.method(AbstractConnection, "send_command", sent)
        patches.method(psycopg.Connection, driver.BEGIN, begun)

    def _is(self, kind: str, what: str) -> bool:
        mutation = Mutation(kind, str(own_line() or ""), shortened(what, 80))
        if mutation.line:
            self.seen.setdefault(mutation)
        return mutation == self.wanted

    def _changes(self, text: str, params: Any) -> Iterator[tuple[str, Any]]:
        """The mutations that are possible for this command."""
        if ROWS.search(text):
            plain = ROWS.sub("", text)
            yield LOCK, lambda run, cursor: run(cursor, plain)
            yield LATER, lambda run, cursor: _locked_later(run, cursor, plain, text)
        if ADVISORY.search(text) and "unlock" not in text.lower():
            yield LOCK, lambda run, cursor: run(cursor, ADVISORY.sub("true", text))
        if TABLE.match(text):
            yield LOCK, lambda run, cursor: run(cursor, "SELECT 1", None)
        if (found := _ORDER.search(text)) and "%s" not in found[0]:
            yield ORDER, lambda run, cursor: run(cursor, _ORDER.sub("", text))
        if (match := _CHANGED.match(text)) and isinstance(params, list | tuple | None):
            yield IN_PLACE, lambda run, cursor: _in_two(run, cursor, match, text, list(params or ()))


def _locked_later(run: Any, cursor: Any, plain: str, locked: str) -> Any:
    found = run(cursor, plain)
    with cursor.connection.cursor() as other:
        run(other, locked)
    return found


def _in_two(run: Any, cursor: Any, match: re.Match[str], text: str, params: list[Any]) -> Any:
    """Read the value that the command would set, and then write it."""
    with cursor.connection.cursor() as other:
        run(other, f"SELECT {match['value']} FROM {match['table']} {match['where']}", params or None)  # noqa: S608
        rows = other.fetchall()
    if len(rows) != 1:
        return run(cursor, text)
    (value,) = rows[0].values() if isinstance(rows[0], dict) else rows[0]
    rest = params[match["value"].count("%s") :]
    return run(cursor, f"UPDATE {match['table']} SET {match['column']} = %s {match['where']}", [value, *rest])  # noqa: S608


def mutations(opened: Opened) -> Iterator[Tried]:
    """Each mutation that is possible for these operations, and its result."""
    mutator = Mutator()
    with opened.harness([mutator.install]) as (harness, system):
        SerialOrders(harness, system).all()
        touched = [table for table in opened.postgres.tables if table.title in opened.touched]
    for mutation in mutator.seen:
        yield _tried(opened, mutation)
    # a session of its own: psycopg forgets its prepared statements in a session that alters a table
    with psycopg.connect(opened.addresses.database, autocommit=True) as session:
        oids = [table.oid for table in touched]
        session.execute("SET lock_timeout = '5s'")
        for table, name, definition, named in session.execute(_CONSTRAINTS, {"tables": oids}).fetchall():
            with _dropped(opened, session, table, name, definition, named):
                yield _tried(opened, Mutation(CONSTRAINT, "", f"{table}: {name if named else definition}"))


def _tried(opened: Opened, mutation: Mutation) -> Tried:
    try:
        with opened.harness([Mutator(mutation).install]) as (harness, _):
            searched = UntilBroken(harness).explore()  # right is what the whole operations come to
    except (Broken, Mistake) as error:
        return Tried(mutation, UNDECIDED, str(error))
    word = next((word for word in BREACHES if word in searched.words), "")
    if found := searched.smallest(word) if word else None:
        return Tried(mutation, word, found.judgement.sentences[0])
    return Tried(mutation, SURVIVES) if searched.exhausted else Tried(mutation, UNDECIDED, searched.cause)


@contextmanager
def _dropped(
    opened: Opened, session: psycopg.Connection[Any], table: str, name: str, definition: str, named: bool
) -> Iterator[None]:
    """In this block the constraint, or the unique index, does not exist."""
    quoted = sql.Identifier(name).as_string()
    session.execute(f"ALTER TABLE {table} DROP CONSTRAINT {quoted}" if named else f"DROP INDEX {name}")
    try:
        yield
    finally:
        opened.postgres.restore()
        session.execute(f"ALTER TABLE {table} ADD CONSTRAINT {quoted} {definition}" if named else definition)
