"""A PostgreSQL database after a setup: what makes its contents, and how a schedule's changes are undone.

Whatever the schema is, one function in the server compares each table that may have been written (written.py) with its
opening state. It rewrites only the tables that a schedule has changed, and sets each sequence back to its number.
Triggers and foreign keys are disabled meanwhile. After the first schedule, and again after 16 times as many, every
table is compared, so that a change which no counter shows does not go unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import log
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from lost_update_lab.model.errors import IT_COUNTS, Broken
from lost_update_lab.snapshot import functions, written
from lost_update_lab.snapshot.by_server import ByServer
from lost_update_lab.snapshot.catalogue import OWN, Catalogue, Table, look, values
from lost_update_lab.snapshot.checks import past_checks
from lost_update_lab.snapshot.exact import read
from lost_update_lab.snapshot.functions import KeptTable, Names
from lost_update_lab.snapshot.other_sessions import is_locked_out, keeps_a_lock

VACUUM_EVERY = 300  # runs: each leaves dead rows, which slow down the next ones
PATIENCE = 10  # s; a session of nobody's may be inside of a transaction for ever
DISTANCE = 1009  # what draw_ahead moves the first sequence by; the second by twice as much
#: it waits up to 5 s for each session that has read the table and is inside of a transaction, if it may truncate
_VACUUM = sql.SQL("VACUUM (PROCESS_TOAST {}, TRUNCATE {}) {}")
#: the catalogue itself, of numbers below 16384, is locked now and then: by autovacuum
_ALONE = """
SELECT NOT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON l.database = d.oid
WHERE locktype = 'relation' AND datname = current_database() AND pid <> pg_backend_pid() AND relation >= 16384)
"""
#: rows come in the order of their places on disk, however large the table is, and whoever reads it too
AS_THEY_LIE = (
    "SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0; SET enable_indexonlyscan = off"
)
#: as those of a table that is empty and was truncated: with others, the planner may choose another plan
_TRUNCATED = "UPDATE pg_class SET relpages = 0 WHERE oid = ANY ('{{{}}}'::oid[])"


class CannotBeRestored(RuntimeError):
    """The database holds something that no snapshot can restore. The message says what."""


class PostgresSnapshot:
    """The database as it is now. `connection`: a superuser's, in autocommit, used for nothing else. `only`: the titles
    of the tables that a schedule may write; None: any of them."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        schema: str = OWN[1],
        only: Collection[str] | None = None,
    ) -> None:
        self.connection, self.schema = connection, schema
        connection.execute(f"SET lock_timeout = '{PATIENCE}s'")
        connection.execute(AS_THEY_LIE)
        there = look(connection)
        tables = tuple(each for each in there.tables if each.columns and (only is None or each.title in only))
        self.catalogue: Catalogue = replace(there, tables=tables)
        if found := self.catalogue.out_of_reach:
            raise CannotBeRestored(
                f"the database holds {', '.join(found)}: no snapshot puts that back. "
                "Explore in a database without it"
            )
        #: somebody asks where on disk a row is (ctid), which must be the same place in each run
        self.shows_places = False
        self._runs = 0
        self._kept: list[KeptTable] = []
        self._looks: dict[tuple[str, ...], str] = {}
        self._take()

    @property
    def tables(self) -> tuple[Table, ...]:
        return self.catalogue.tables

    @property
    def counts(self) -> bool:
        """Are the tables that a schedule has written told by PostgreSQL's counters?"""
        rows = sum(each.rows for each in self._kept)
        return len(self.tables) > written.FEW_TABLES or rows > written.FEW_ROWS

    @property
    def names(self) -> list[str]:
        """The names of the tables that the contents show."""
        return [table.name for table in self.tables]

    def contents_sql(self, left_out: Names = (), by_server: ByServer | None = None) -> str:
        """One query for all tables, which returns one row: a text that makes a state and, if columns are `left_out`, or
        values `by_server`, a second text of the tables that have them, whole."""
        partly = _partly(left_out, by_server)
        looks = [self._look(self._kept, left_out, by_server)]
        if partly:
            looks.append(self._look([each for each in self._kept if each.table.title in partly]))
        return self._asks(*looks)

    def _asks(self, *looks: str) -> str:
        return f"SELECT {', '.join(looks)} FROM {self.schema}.written() AS w"  # noqa: S608  (names of our own)

    def _look(
        self, tables: Sequence[KeptTable], left_out: Names = (), by_server: ByServer | None = None
    ) -> str:
        """The call of a function that looks at these tables, which is made if it does not exist."""
        names = [f"{each.table.title} {each.ordered}" for each in tables]
        key = (*names, "", *sorted(map(".".join, left_out)), repr(by_server))
        if key not in self._looks:
            name = f"look_{len(self._looks)}"
            partly = _partly(left_out, by_server)
            sums = self._values(
                [each for each in tables if each.table.title in partly],
                lambda each: each.sum_of(each.kept, left_out, by_server),
            )
            kept = [replace(each, opening=sums.get(each.table, each.opening)) for each in tables]
            function = functions.looking(sql.Identifier(self.schema, name), kept, left_out, by_server)
            self.connection.execute(function)
            self._looks[key] = f"{self.schema}.{name}(w)"
        return self._looks[key]

    def _take(self) -> None:
        run = self.connection.execute
        schema = sql.Identifier(self.schema)
        run(sql.SQL("DROP SCHEMA IF EXISTS {0} CASCADE; CREATE SCHEMA {0}").format(schema))
        self._keep()
        make = written.make if self.counts else written.make_always
        run(make(self.schema, self.tables))
        self._define(self.catalogue)
        run("SET session_replication_role = replica")
        run("SET track_counts = off")  # what it restores is no change
        self.connection.pgconn.prepare(b"empty", f"SELECT {self.schema}.empty($1, $2)".encode())
        self.connection.pgconn.prepare(b"alone", _ALONE.encode())
        self.connection.pgconn.prepare(b"fill", f"SELECT {self.schema}.fill($1)".encode())
        changed = self._look(self._in_any_order(self._kept, lambda _: True))
        self.connection.pgconn.prepare(b"changed", self._asks(changed).encode())

    def _keep(self) -> None:
        """Keep the rows of all tables, in a few commands for all of them."""
        run = self.connection.execute
        row = run("SELECT pg_current_xact_id()::text::bigint % 4294967296").fetchone()
        assert row
        kept = [
            KeptTable(number, table, sql.Identifier(self.schema, f"opening_{number}"), row[0])
            for number, table in enumerate(self.tables, 1)
        ]
        if not kept:
            return
        run(sql.SQL("; ").join(map(functions.keeping, kept)))
        kept = self._summed(kept)
        if large := [functions.indexing(each) for each in kept if each.is_large]:
            run(sql.SQL("; ").join(large))
        self._kept = self._in_any_order(kept, lambda each: each.is_large)

    def _summed(self, tables: Sequence[KeptTable]) -> list[KeptTable]:
        sums = self._values(tables, lambda each: each.sum_of(each.kept))
        return [replace(each, opening=sums[each.table]) for each in tables]

    def _in_any_order(
        self, tables: Sequence[KeptTable], which: Callable[[KeptTable], bool]
    ) -> list[KeptTable]:
        """The same tables; of those `which`, the order of the rows does not count."""
        summed = self._summed(
            [replace(each, ordered=False) for each in tables if each.ordered and which(each)]
        )
        instead = {each.number: each for each in summed}
        return [instead.get(each.number, each) for each in tables]

    def _values(
        self, tables: Sequence[KeptTable], of: Callable[[KeptTable], sql.Composed]
    ) -> dict[Table, Any]:
        """Table → what this expression of its opening rows comes to."""
        found = values(self.connection, [of(each) for each in tables])
        return dict(zip([each.table for each in tables], found, strict=True))

    def _define(self, found: Catalogue) -> None:
        """Define the functions that restore everything that still exists."""
        there = {table.oid for table in found.tables}
        names = {each.quoted.as_string() for each in found.sequences}
        kept = [each for each in self._kept if each.table.oid in there]
        sequences = [each for each in self.catalogue.sequences if each.quoted.as_string() in names]
        self.connection.execute(functions.emptying(self.schema, kept, sequences, self.counts))
        self.connection.execute(functions.filling(self.schema, kept))

    def restore(self) -> None:
        """Restore the tables that a schedule has written, and the sequences. Raises Broken: one was changed unseen."""
        self._runs += 1
        thorough = self._runs % VACUUM_EVERY == 0
        if changed := self._restore(log(max(self._runs - 1, 1), 16).is_integer(), thorough):
            raise Broken(
                f"the table {changed} was changed, and PostgreSQL's counters do not show it", IT_COUNTS
            )
        for each in self._kept if thorough else ():
            if each.is_large:  # a smaller one has to be empty, or new rows come in front
                self.connection.execute(sql.SQL("VACUUM {}").format(each.table.quoted))

    def restore_all(self) -> None:
        """The same, also where sessions wrote that were not told to publish their counts, and if tables or sequences
        have been dropped since."""
        self._define(look(self.connection))
        self._restore(every=True)

    def _restore(self, every: bool, thorough: bool = False) -> str:
        """Returns a table that differed and seemed not to be written. `thorough`: leave no dead row."""
        how = [b"t" if each else b"f" for each in (every, self.shows_places or thorough)]
        if not (emptied := self._filled(b"empty", how)):
            return ""
        numbers = emptied.replace("!", "").strip(",")
        tables = [self.tables[int(number) - 1] for number in numbers.split(",")]
        alone = self._done(self.connection.pgconn.exec_prepared(b"alone", ())) == "t"
        how_much = [sql.SQL("true" if each else "false") for each in (thorough, alone)]
        vacuum = _VACUUM.format(*how_much, sql.SQL(", ").join(table.quoted for table in tables))
        self._done(self.connection.pgconn.exec_(vacuum.as_bytes(self.connection)))
        if not alone:
            oids = ",".join(str(table.oid) for table in tables)
            self._done(self.connection.pgconn.exec_(_TRUNCATED.format(oids).encode()))
        self._filled(b"fill", [f"{{{numbers}}}".encode()])
        found = zip(tables, emptied.strip(",").split(","), strict=True)
        return next((table.title for table, number in found if number.endswith("!")), "")

    def _filled(self, function: bytes, values: Sequence[bytes]) -> str:
        """What one of the functions returns that insert rows."""
        session, oids = self.connection.pgconn, [table.oid for table in self.tables]
        return self._done(past_checks(session, oids, lambda: session.exec_prepared(function, values)))

    @staticmethod
    def _done(result: PGresult) -> str:
        """The first column of the first row; "": there is none."""
        if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            return (result.get_value(0, 0) or b"").decode()
        if is_locked_out(result):
            raise keeps_a_lock()
        raise RuntimeError(f"restoring the opening state: {result.error_message.decode(errors='replace')}")

    def changed(self) -> list[Table]:
        """The tables that differ from the opening state."""
        return list(self._changed())

    def _changed(self) -> Iterator[Table]:
        found = self.connection.pgconn.exec_prepared(b"changed", ())
        if found.status != ExecStatus.TUPLES_OK:
            raise RuntimeError(found.error_message.decode(errors="replace"))
        for part in filter(None, (found.get_value(0, 0) or b"").decode().split(",")):
            yield self.tables[int(part.partition(":")[0]) - 1]

    def rows(self, tables: Sequence[Table]) -> dict[Table, list[dict[str, Any]]]:
        """The rows that are committed now, read by libpq itself, which passes no gate. Values are those of JSON."""
        return {table: self._rows_of(table) for table in tables}

    def _rows_of(self, table: Table) -> list[dict[str, Any]]:
        query = sql.SQL("SELECT row_to_json(lab_row.*)::text FROM ONLY {} lab_row").format(table.quoted)
        found = self.connection.pgconn.exec_(query.as_bytes(self.connection))
        return [read(found.get_value(row, 0) or b"null") for row in range(found.ntuples)]

    def versions(self, table: Table) -> list[str]:
        """For each of these rows, in the same order, the transaction that wrote it."""
        query = sql.SQL("SELECT lab_row.xmin::text FROM ONLY {} lab_row").format(table.quoted)
        found = self.connection.pgconn.exec_(query.as_bytes(self.connection))
        return [(found.get_value(row, 0) or b"").decode() for row in range(found.ntuples)]

    def value(self, query: str) -> str:
        """The first column of the first row. Raises LookupError with the server's words."""
        found = self.connection.pgconn.exec_(query.encode())
        if found.status != ExecStatus.TUPLES_OK:
            raise LookupError(found.error_message.decode(errors="replace").strip())
        return (found.get_value(0, 0) or b"").decode()

    def opening(self, table: Table) -> list[dict[str, Any]]:
        """The rows that existed after the setup."""
        kept = sql.Identifier(self.schema, f"opening_{self.tables.index(table) + 1}")
        query = sql.SQL("SELECT row_to_json(lab_row.*)::text FROM {} lab_row").format(kept)
        return [read(text) for (text,) in self.connection.execute(query).fetchall()]

    def draw_ahead(self) -> dict[int, int]:
        found = {}
        for number, each in enumerate(self.catalogue.sequences):
            name, distance = each.quoted.as_string(), DISTANCE * (number + 1)
            with suppress(psycopg.Error):  # it is too short, or gone
                self.connection.execute(
                    "SELECT setval(%s::regclass, %s, %s)", [name, each.last + distance, each.called]
                )
                found[number] = distance
        return found

    def last_drawn(self) -> dict[int, int]:
        sequences = enumerate(self.catalogue.sequences)
        return {number: each.last if each.called else each.last - 1 for number, each in sequences}

    def texts(self) -> list[str]:
        """All of them, of every table."""
        parts = [sql.SQL("SELECT row_to_json(t.*)::text FROM {} t").format(each.kept) for each in self._kept]
        return (
            [text for (text,) in self.connection.execute(sql.SQL(" UNION ALL ").join(parts))] if parts else []
        )

    def close(self) -> None:
        """Remove everything that the explorer has made in the database."""
        self.connection.execute("DROP EVENT TRIGGER IF EXISTS explorer_login")
        for name in (OWN[0], self.schema):
            self.connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))
        self.connection.close()


def _partly(left_out: Names, by_server: ByServer | None) -> set[str]:
    """The titles of the tables of which not everything makes a state."""
    return {title for title, _ in (*left_out, *(by_server.columns if by_server else ()))}
