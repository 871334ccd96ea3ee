"""A MariaDB database after a setup: what makes its contents, and how a schedule's changes are undone.

A deleted row stays in InnoDB's indexes until the purge removes it, and gap locks begin and end at it. So a table is
emptied by TRUNCATE, which leaves nothing of the row (and restarts the table's counter). And no row is purged while a
schedule runs: an old snapshot is held open, for which the purge has to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from lost_update_lab.snapshot.mariadb_behind import Behind, words
from lost_update_lab.snapshot.other_sessions import keeps_a_lock
from lost_update_lab.snapshot.postgres import CannotBeRestored

#: the databases that keep an opening state, and what was there before a scenario; followed by the name of the user's
OPENING, BEFORE = "explorer_opening", "explorer_before"
#: the longest name of a database
_LONGEST = 64
#: the number of restores for which one old snapshot is held: what the purge has to keep for it grows
HELD_FOR = 200
#: s; a session that still uses a table would keep it from being emptied for a day, MariaDB's own time-out
PATIENCE = 60
_LOCK_WAIT_TIMEOUT = 1205

_TABLES = """
SELECT table_name, auto_increment IS NOT NULL FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' ORDER BY table_name
"""
_SEQUENCES = """
SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'SEQUENCE'
"""
_NAMES = """
SELECT table_name FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_type NOT LIKE '%VIEW' AND table_type NOT LIKE '%TEMPORARY%'
"""
#: tables that TRUNCATE does not empty, or not to what they were
_UNKNOWN = """
SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = DATABASE()
AND table_type NOT IN ('BASE TABLE', 'SEQUENCE', 'VIEW', 'SYSTEM VIEW') AND table_type NOT LIKE '%TEMPORARY%'
ORDER BY table_name
"""
#: what a setup makes besides tables
_MADE = """
SELECT 'VIEW', table_name FROM information_schema.views WHERE table_schema = DATABASE()
UNION ALL SELECT routine_type, routine_name FROM information_schema.routines WHERE routine_schema = DATABASE()
"""
_NEXT = "SELECT next_not_cached_value FROM `{}`"
_COLUMNS = """
SELECT table_name, column_name, column_key = 'PRI', extra LIKE '%GENERATED%', column_default
FROM information_schema.columns
WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position
"""
_TRIGGERS = """
SELECT trigger_name FROM information_schema.triggers
WHERE event_object_schema = DATABASE() AND event_manipulation = 'INSERT' AND trigger_name NOT LIKE 'explorer\\_%'
"""

Run = Callable[[str], tuple[tuple[Any, ...], ...]]
Rows = Mapping[str, tuple[tuple[Any, ...], ...]]


@dataclass(frozen=True, slots=True)
class MariadbTable:
    """`numbers`: an insert draws a number from a counter; `sequences`: those that a DEFAULT asks."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    numbers: bool
    stored: tuple[str, ...]
    sequences: tuple[str, ...] = ()

    @property
    def listed(self) -> str:
        """The columns that are written when a row is put back."""
        return ", ".join(f"`{each}`" for each in self.stored)


class MariaDBSnapshot:
    """The database as it is now. `run`: executes a statement past the gates, in a session that is used for nothing
    else, and returns its rows. `held`: the same in another session. `besides`: tables that no schedule writes, which
    are left alone."""

    def __init__(self, run: Run, held: Run, besides: Collection[str] = (), kept: str = OPENING) -> None:
        self.run, self._held = run, held
        self._kept = f"{kept}_{run('SELECT DATABASE()')[0][0]}"[:_LONGEST]
        if found := run(_TRIGGERS):
            raise CannotBeRestored(
                f"the database has a trigger for inserts ({found[0][0]}), which would act when rows are put back. "
                "Explore in a database without it"
            )
        if unknown := [each for each in run(_UNKNOWN) if each[0] not in besides]:
            name, kind = unknown[0]
            raise CannotBeRestored(
                f"the table {name} cannot be put back as it was: it is of the kind {kind}. For the trial, make it an "
                f"ordinary one (without WITH SYSTEM VERSIONING, or by ALTER TABLE `{name}` DROP SYSTEM VERSIONING)"
            )
        #: the number that each gives out first in every schedule
        self.sequences = {name: int(run(_NEXT.format(name))[0][0]) for (name,) in run(_SEQUENCES)}
        self.tables = {each.name: each for each in _look(run, self.sequences) if each.name not in besides}
        self._filled = [name for name in self.tables if run(f"SELECT 1 FROM `{name}` LIMIT 1")]  # noqa: S608
        self._made, self._behind = run(_MADE), Behind(run)
        self._restores = 0
        self._take()

    def _take(self) -> None:
        self.run("SET SESSION foreign_key_checks = 0")
        self.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        self.run("SET SESSION autocommit = 1")
        self.run(f"SET SESSION lock_wait_timeout = {PATIENCE}")
        self.run(f"DROP DATABASE IF EXISTS `{self._kept}`")
        self.run(f"CREATE DATABASE `{self._kept}`")
        for name in self._filled:
            columns = self.tables[name].listed  # `*` would leave out what is INVISIBLE
            self.run(f"CREATE TABLE `{self._kept}`.`{name}` AS SELECT {columns} FROM `{name}`")  # noqa: S608
        self.restore({*self.tables, *self.sequences})

    def rows(self) -> Rows:
        """All committed rows, by table, in the order of their keys."""
        return {each.name: self.run(_select(each)) for each in self.tables.values()}

    def named_in(self, text: str) -> set[str]:
        """The tables and sequences that a command names, or reaches through what it names. If there are none, it may
        write anywhere."""
        reached, every = self._behind.reached(text), {*self.tables, *self.sequences}
        named = {name for name in every if reached is not None and name.lower() in reached} or every
        return named.union(*(self.tables[name].sequences for name in named & self.tables.keys()))

    def draws(self, names: Collection[str]) -> bool:
        """Does an insert that names these draw a number?"""
        return any(name in self.sequences or self.tables[name].numbers for name in names)

    def draws_behind(self, text: str) -> bool:
        """Does a command that inserts nothing by itself draw a number: by what is behind it, or of a sequence?"""
        reached, own = self._behind.reached(text), words(text)
        if reached is None:
            return True
        behind = {each for each in self.tables if each.lower() in reached and each.lower() not in own}
        return self.draws({each for each in self.sequences if each.lower() in reached} | behind)

    def restore(self, written: Collection[str]) -> None:
        """Restore the tables that a run has written."""
        if self._restores % HELD_FOR == 0:
            self._held("ROLLBACK")
            self._held("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self._held("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        self._restores += 1
        for name in self.sequences.keys() & set(written):
            self.run(f"ALTER SEQUENCE `{name}` RESTART WITH {self.sequences[name]}")
        for name in self.tables.keys() & set(written):
            self._change(f"TRUNCATE `{name}`")
            if name in self._filled:
                columns = self.tables[name].listed
                self.run(
                    f"INSERT INTO `{name}` ({columns}) SELECT {columns} FROM `{self._kept}`.`{name}`"  # noqa: S608
                )

    def _change(self, statement: str) -> None:
        """Raises Broken: a session of nobody's is inside of a transaction that has used the table."""
        try:
            self.run(statement)
        except Exception as error:
            if error.args[:1] == (_LOCK_WAIT_TIMEOUT,):
                raise keeps_a_lock() from None
            raise

    def restore_all(self) -> None:
        """Drop what was created since, and restore the others, as far as they exist."""
        for kind, name in self.run(_MADE):
            if (kind, name) not in self._made:
                self.run(f"DROP {kind} IF EXISTS `{name}`")
        there = {name for (name,) in self.run(_NAMES)}
        for name in there - {*self.tables, *self.sequences}:
            self._change(f"DROP TABLE `{name}`")  # of a sequence, too
        self.restore(there & {*self.tables, *self.sequences})

    def drop(self) -> None:
        """Remove everything that the explorer has made."""
        self._held("ROLLBACK")
        self.run(f"DROP DATABASE IF EXISTS `{self._kept}`")


def _select(table: MariadbTable) -> str:
    columns = ", ".join(f"`{each}`" for each in table.columns)
    order = ", ".join(f"`{each}`" for each in table.key) or columns
    return f"SELECT {columns} FROM `{table.name}` ORDER BY {order}"  # noqa: S608  (names of its own)


def _look(run: Run, sequences: Collection[str]) -> list[MariadbTable]:
    columns = run(_COLUMNS)

    def asked(table: str) -> tuple[str, ...]:
        defaults = [str(default).lower() for of, _, _, _, default in columns if of == table and default]
        return tuple(name for name in sequences if any(f"`{name.lower()}`" in each for each in defaults))

    return [
        MariadbTable(
            name,
            tuple(column for of, column, *_ in columns if of == name),
            tuple(column for of, column, key, *_ in columns if of == name and key),
            bool(numbers),
            tuple(column for of, column, _, made, _ in columns if of == name and not made),
            asked(name),
        )
        for name, numbers in run(_TABLES)
    ]
