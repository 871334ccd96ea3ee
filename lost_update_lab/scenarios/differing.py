"""What differs between two runs of one order, and so means nothing: values, or whole columns where it must be so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lost_update_lab.model.commands import Step
from lost_update_lab.scenarios.serial import Serial
from lost_update_lab.snapshot.by_server import ByServer, can_be_told
from lost_update_lab.snapshot.catalogue import Column, Table
from lost_update_lab.snapshot.functions import Names
from lost_update_lab.snapshot.tables import TableRows, Tables
from lost_update_lab.under_test.fresh import UUID, key_of
from lost_update_lab.under_test.operations import Operations

#: by what a command writes a column that it does not name
_BY_DEFAULT = re.compile(r"\b(?:INSERT|REPLACE|MERGE|COPY|DEFAULT)\b", re.IGNORECASE)


def written_by(tables: Tables, now: str, times: bool) -> ByServer:
    """What the server may write by itself, as far as DEFAULTs tell. `now`: asks for its clock, in UTC. `times`: they go
    by that clock."""
    columns = {
        (table.title, each.name): each.type
        for table in tables.tables
        for each in table.columns
        if each.chance and can_be_told(each.type) and (times or each.type == "uuid")
    }
    since = datetime.fromisoformat(tables.value(now))
    referred = {
        each.oid: each for each in tables.tables if columns.get((each.title, each.surrogate)) == "uuid"
    }
    return ByServer(since.replace(tzinfo=UTC), columns, tables=referred)


def rows_of(system: Operations) -> TableRows:
    return system.database.rows(system.database.changed())


def keys_sent(steps: Iterable[Step]) -> set[str]:
    """The random keys that commands hold. A worker's are the same ones in each run."""
    return {key_of(each) for step in steps for each in UUID.findall(step.command)}


class Differing:
    """`sent`: the random keys that the operations have sent in both runs."""

    def __init__(self, by_server: ByServer, left_out: Names, sent: Collection[str]) -> None:
        more = frozenset(sent) if "uuid" in by_server.columns.values() else frozenset[str]()
        self.by_server = replace(by_server, keys=by_server.keys | more)
        self.left_out, self.sent = frozenset(left_out), frozenset(sent)

    def without(self, one: TableRows, other: TableRows) -> tuple[ByServer, Names]:
        """What the server writes, and the columns that are left out, after a look at what both runs have left."""
        for table in one.keys() & other.keys():
            for column, here, there in self._different(table, one[table], other[table]):
                self._note(table, column, here, there)
        if not self.by_server.tells_keys:
            keys = {each for each, kind in self.by_server.columns.items() if kind == "uuid"}
            self.left_out |= keys
        return self.by_server, self.left_out

    def _note(self, table: Table, column: Column, here: Any, there: Any) -> None:
        """A column whose values are all told is noted as such a column; any other one is left out."""
        name = table.title, column.name
        known = replace(self.by_server, keys=self.by_server.keys | self.sent)
        if name not in known.columns and all(known.has_written(column.type, each) for each in (here, there)):
            self.by_server = replace(known, columns={**known.columns, name: column.type})
        else:
            self.left_out |= {name}

    def _different(self, table: Table, one: Any, other: Any) -> Iterator[tuple[Column, Any, Any]]:
        """First the columns that hold other values, in whichever rows. Rows are told apart by the rest: by a random id,
        a row would be compared with any other one."""
        rest = list(table.columns)
        for column in table.columns if len(one) == len(other) else ():
            only = self._only(table, column, one, other), self._only(table, column, other, one)
            if any(only):
                rest.remove(column)
                yield from self._pairs(table, [column], *only)
        yield from self._pairs(table, rest, one, other)

    def _only(self, table: Table, column: Column, rows: Any, others: Any) -> list[Any]:
        """The rows whose value in this column comes more often than in the others."""
        here, there = ([repr(self._shown(table, column, row)) for row in of] for of in (rows, others))
        more = Counter(here) - Counter(there)
        return [row for row, value in zip(rows, here, strict=True) if value in more]

    def _pairs(
        self, table: Table, columns: Sequence[Column], one: Any, other: Any
    ) -> Iterator[tuple[Column, Any, Any]]:
        """Compare these columns of rows that are the same row in both runs, as far as these columns tell."""
        here, there = (sorted(rows, key=lambda row: self._key(table, columns, row)) for rows in (one, other))
        for row, same in zip(here, there, strict=False):
            for column in columns:
                pair = [self._shown(table, column, each) for each in (row, same)]
                if pair[0] != pair[1]:
                    yield column, row.get(column.name), same.get(column.name)

    def _shown(self, table: Table, column: Column, row: Mapping[str, Any]) -> Any:
        value, name = row.get(column.name), (table.title, column.name)
        told = name in self.by_server.columns and self.by_server.has_written(column.type, value)
        return "" if told or name in self.left_out else value

    def _key(self, table: Table, columns: Sequence[Column], row: Mapping[str, Any]) -> str:
        """Rows that the server has given random keys go by all that they hold besides."""
        shown = {each.name: self._shown(table, each, row) for each in columns}
        shown |= {
            each.name: "" for each in columns if self.by_server.has_written(each.type, row.get(each.name))
        }
        return repr(([shown.get(name) for name in table.key], shown))


def drawn_by(orders: Iterable[Serial], tables: Iterable[Table]) -> set[tuple[str, str]]:
    """The columns that a DEFAULT fills by chance, in which that cannot be told, of tables to which the operations add
    rows. Where they only set values of their own, those mean something."""
    drawn = [
        (table, each.name)
        for table in tables
        for each in table.columns
        if each.chance and not can_be_told(each.type)
    ]
    texts = {step.command for order in orders for step in order.steps} if drawn else set[str]()
    return {
        (table.title, name)
        for table, name in drawn
        if any(
            _BY_DEFAULT.search(text) and re.search(rf"\b{re.escape(table.name)}\b", text) for text in texts
        )
    }
