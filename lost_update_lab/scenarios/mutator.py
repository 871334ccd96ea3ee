"""The gate that takes away, or moves, one piece of an operation's protection, where the operation sends it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import psycopg
from psycopg.pq import TransactionStatus
from redis import asyncio
from redis.connection import AbstractConnection

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs.place import here
from lost_update_lab.scenarios import protection
from lost_update_lab.scenarios.in_place import APART, IN_COROUTINE, InPlace, in_place
from lost_update_lab.scenarios.protection import ASK_NOTHING, releases, taken_if_free, without, without_level
from lost_update_lab.scenarios.result import Mutation
from lost_update_lab.telling.lines import own_line
from lost_update_lab.telling.narrative import shortened

LOCK, LATER, ATOMIC, LEVEL, ORDER, IN_PLACE = (
    "without the lock",
    "with the lock after the read",
    "without the transaction",
    "at the server's isolation level",
    "without ORDER BY",
    "read and written instead of changed in place",
)
#: not in coroutines: it takes a command more, for which one would have to wait; or the user's line is not in sight
BY_THREADS = (LATER, IN_PLACE, ATOMIC)
_BEGIN = re.compile(r"\s*(?:BEGIN|START\s+TRANSACTION)\b", re.IGNORECASE)
#: what opens no transaction
_OPENS_NONE = re.compile(r"\s*(?:SET|COMMIT|ROLLBACK|SHOW|USE)\b", re.IGNORECASE)
_ORDER = re.compile(
    r"\s+ORDER\s+BY\s+.+?(?=\s+(?:LIMIT|OFFSET|FETCH|FOR|LOCK)\b|\s*\)|\s*;|\s*$)", re.IGNORECASE | re.DOTALL
)
#: as Django sends them
_SAVEPOINT = re.compile(r"(SAVEPOINT|RELEASE SAVEPOINT|ROLLBACK TO SAVEPOINT) (\S+)\s*$")

Run = Callable[..., Any]


def _begins(connection: Any) -> bool:
    """Will psycopg begin a transaction for its next command?"""
    return not connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE


@dataclass(slots=True)
class Apart:
    """A connection without its transaction, in this run. The outermost savepoint inside that is a transaction then."""

    run: Any
    savepoint: str = ""
    #: it was rolled back, and its program will release it
    over: bool = False

    def instead(self, text: str, verb: str, name: str) -> str:
        if verb == "SAVEPOINT" and not self.savepoint:
            self.savepoint, self.over = name, False
            return "BEGIN"
        if name != self.savepoint:
            return text
        if verb == "ROLLBACK TO SAVEPOINT":
            self.over = True
            return "ROLLBACK"
        self.savepoint = ""
        return ASK_NOTHING if self.over else "COMMIT"


@dataclass
class Mutator:
    """Applies one mutation to each command that it `applies` to, and records all possible mutations."""

    wanted: Mutation | None = None
    applies: Callable[[], object] = here
    seen: dict[Mutation, None] = field(default_factory=dict)
    #: those that are not tried, and why
    left: dict[Mutation, str] = field(default_factory=dict)
    #: it would have changed several rows at once, and was not made
    rows: bool = False
    #: it was made, somewhere
    made: bool = False
    #: connections of psycopg without the transaction that it would begin again at the next command
    apart: WeakKeyDictionary[Any, Apart] = field(default_factory=WeakKeyDictionary)

    def install(self, patches: Patches) -> None:
        self._psycopg(patches, psycopg.Connection, psycopg.Cursor)
        self._psycopg(patches, psycopg.AsyncConnection, psycopg.AsyncCursor, BY_THREADS)
        for connection_of in (AbstractConnection, asyncio.connection.AbstractConnection):
            self._redis(patches, connection_of)
        if find_spec("pymysql"):
            self._pymysql(patches)
        if find_spec("aiomysql"):
            self._aiomysql(patches)

    def _psycopg(
        self, patches: Patches, connection_of: Any, cursor_of: Any, besides: Collection[str] = ()
    ) -> None:
        """`besides`: kinds of mutations that are not made there."""
        execute = cursor_of.execute

        def executed(cursor: Any, query: Any, params: Any = None, **keywords: Any) -> Any:
            def run(cur: Any, text: Any, given: Any = params) -> Any:
                return execute(cur, text, given, **keywords)

            connection = cursor.connection
            savepoint = ATOMIC not in besides and isinstance(query, str) and _SAVEPOINT.match(query)
            if savepoint and self.applies() and self._is_apart(connection, _begins(connection)):
                return run(cursor, self.apart[connection].instead(query, *savepoint.groups()))
            return self._executed(run, cursor, query, params, besides=besides)

        patches.method(cursor_of, "execute", executed)
        if ATOMIC not in besides:
            self._transactions(patches, connection_of)

    def _transactions(self, patches: Patches, connection_of: Any) -> None:
        begin = getattr(connection_of, driver.BEGIN)

        def begun(connection: Any) -> bytes:
            text: bytes = begin(connection)
            if not self.applies():
                return text
            if without_level(text) != text and self._is(LEVEL, text.decode()):
                return without_level(text)
            return ASK_NOTHING.encode() if self._is_apart(connection) else text

        def ended(plain: Any) -> Any:
            def end(connection: Any) -> Any:
                self.apart.pop(connection, None)
                return plain(connection)

            return end

        patches.method(connection_of, driver.BEGIN, begun)
        for name in ("commit", "rollback"):
            patches.method(connection_of, name, ended(getattr(connection_of, name)))

    def _is_apart(self, connection: Any, begins: bool = True) -> bool:
        """Is this transaction taken away? `begins`: with its next command."""
        run = getattr(self.applies(), "run", None)
        if connection in self.apart and self.apart[connection].run is run:
            return True
        if begins and self._is(ATOMIC, "BEGIN"):
            self.apart[connection] = Apart(run)
            return True
        return False

    def _redis(self, patches: Patches, connection_of: Any) -> None:
        send, pack_all = connection_of.send_command, connection_of.pack_commands

        def changed(words: Any) -> Any:
            plain, what = taken_if_free(words)
            return plain if what and self.applies() and self._is(LOCK, what) else words

        def sent(connection: Any, *words: Any, **keywords: Any) -> Any:
            return send(connection, *changed(words), **keywords)

        def all_packed(connection: Any, commands: Any) -> Any:
            return pack_all(connection, [changed(words) for words in commands])

        patches.method(connection_of, "send_command", sent)
        patches.method(connection_of, "pack_commands", all_packed)

    def _pymysql(self, patches: Patches) -> None:
        """PyMySQL has no BEGIN of its own: without autocommit, the first command opens the transaction."""
        from pymysql.connections import Connection
        from pymysql.cursors import Cursor

        from lost_update_lab.adapters import pymysql as mariadb

        execute: Any = Cursor.execute
        begin: Any = Connection.begin
        #: connections in which each command is a transaction, until their program ends it
        apart: WeakSet[Any] = WeakSet()

        def executed(cursor: Any, query: Any, args: Any = None) -> Any:
            def run(cur: Any, text: Any, given: Any = args) -> Any:
                return execute(cur, text, given)

            link = cursor.connection
            if self.applies() and link and opens(link, query) and self._is(ATOMIC, "BEGIN"):
                apart.add(link)
                link.autocommit(True)
            return self._executed(run, cursor, query, args, on_mariadb=True)

        def opens(link: Any, query: Any) -> bool:
            closed = mariadb.inside(link) or mariadb.commits_by_itself(link)
            return not closed and isinstance(query, str) and not _OPENS_NONE.match(query)

        def begun(link: Any) -> None:
            if not (self.applies() and self._is(ATOMIC, "BEGIN")):
                begin(link)

        def ended(plain: Any) -> Any:
            def end(link: Any) -> None:
                plain(link)
                if link in apart:
                    apart.discard(link)
                    link.autocommit(False)

            return end

        patches.method(Cursor, "execute", executed)
        patches.method(Connection, mariadb.BEGIN, begun)
        for name in (mariadb.COMMIT, mariadb.ROLLBACK):
            patches.method(Connection, name, ended(getattr(Connection, name)))

    def _aiomysql(self, patches: Patches) -> None:
        from aiomysql.cursors import Cursor

        execute = Cursor.execute

        def executed(cursor: Any, query: Any, args: Any = None) -> Any:
            def run(cur: Any, text: Any, given: Any = args) -> Any:
                return execute(cur, text, given)

            return self._executed(run, cursor, query, args, on_mariadb=True, besides=BY_THREADS)

        patches.method(Cursor, "execute", executed)

    def _executed(
        self,
        run: Run,
        cursor: Any,
        query: Any,
        params: Any,
        on_mariadb: bool = False,
        besides: Collection[str] = (),
    ) -> Any:
        if not isinstance(query, str | bytes) or not self.applies():
            return run(cursor, query)
        text = query.decode() if isinstance(query, bytes) else query
        for kind, changed in _changes(text, on_mariadb):
            if kind not in besides and self._is(kind, text):
                return changed(run, cursor)
        return self._changed_in_place(run, cursor, query, text, params, apart=IN_PLACE not in besides)

    def _changed_in_place(
        self, run: Run, cursor: Any, query: Any, text: str, params: Any, apart: bool
    ) -> Any:
        """`apart`: the value can be read by a command before."""
        if not isinstance(params, list | tuple | dict | None):
            return run(cursor, query)
        found = in_place(text, params)
        if found is None or (found and not apart):
            self._cannot(IN_PLACE, text, IN_COROUTINE if found else APART)
            return run(cursor, query)
        for each in found:
            if self._is(IN_PLACE, f"{each.column} in {text}" if len(found) > 1 else text):
                return self._in_two(run, cursor, each, query)
        return run(cursor, query)

    def _in_two(self, run: Run, cursor: Any, change: InPlace, query: Any) -> Any:
        """Read the value that the command would set, and then write it."""
        with cursor.connection.cursor() as other:
            run(other, *change.reading())
            rows = other.fetchall()
        self.rows |= len(rows) > 1
        if len(rows) != 1:
            return run(cursor, query)
        (value,) = rows[0].values() if isinstance(rows[0], dict) else rows[0]
        return run(cursor, *change.writing(value))

    def _cannot(self, kind: str, what: str, why: str) -> None:
        mutation = Mutation(kind, str(own_line() or ""), shortened(what, 80))
        if mutation.line:
            self.left.setdefault(mutation, why)

    def _is(self, kind: str, what: str) -> bool:
        mutation = Mutation(kind, str(own_line() or ""), shortened(what, 80))
        if mutation.line:
            self.seen.setdefault(mutation)
        self.made |= mutation == self.wanted
        return mutation == self.wanted


def _changes(text: str, on_mariadb: bool) -> Iterator[tuple[str, Callable[[Run, Any], Any]]]:
    """The mutations that are possible for this command, besides those of changes in place."""
    plain, taken = without(text, on_mariadb)
    if protection.ISOLATION in taken:
        yield LEVEL, lambda run, cursor: run(cursor, plain, None)
    elif protection.TABLE in taken:
        yield LOCK, lambda run, cursor: run(cursor, plain, None)
    elif taken and not releases(text):
        yield LOCK, lambda run, cursor: run(cursor, plain)
    if {protection.ROWS, protection.SHARED} & set(taken):
        yield LATER, lambda run, cursor: _locked_later(run, cursor, plain, text)
    if _BEGIN.match(text):
        yield ATOMIC, lambda run, cursor: run(cursor, ASK_NOTHING, None)
    if (found := _ORDER.search(text)) and "%s" not in found[0]:
        yield ORDER, lambda run, cursor: run(cursor, _ORDER.sub("", text))


def _locked_later(run: Run, cursor: Any, plain: str, locked: str) -> Any:
    found = run(cursor, plain)
    with cursor.connection.cursor() as other:
        run(other, locked)
    return found
