"""What only the server's real clock, or its chance, has written into a row: another value in each run, which means
nothing. What an operation or the setup has written into the same column does mean something.

A worker's clock is virtual, and so is the server's where it decides something. So a time between the end of the setup
and now, by the server's real clock, is one that the server has written by itself: as a DEFAULT, or as a mere stamp. Of
a random key that is told by exclusion: the setup has not left it, no argument holds it, and no operation sends the same
one in two runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg import sql

from lost_update_lab.snapshot.catalogue import Table

_TIMES = {"timestamp with time zone", "timestamp without time zone", "timestamp", "datetime"}
_KEY = re.compile(r"[0-9a-f]{32}")
#: more keys than this are not handed to the server for each look
MOST_KEYS = 1000
#: a time without a zone may be that of any place on earth
_ANYWHERE = timedelta(hours=15)
#: between the server's clock and this machine's
_SKEW = timedelta(minutes=1)
#: the moments for which a time may stand
_WITH_ZONE, _WITHOUT_ZONE = ("{}",), ("({} AT TIME ZONE 'UTC')", "{}::timestamptz")
_BETWEEN = sql.SQL("({} BETWEEN {}::timestamptz AND statement_timestamp() + interval '1 s')")
_CASE = sql.SQL("CASE WHEN {} THEN {} ELSE {}::text END")
#: which row a key refers to: by its values, and by how many rows come before it, since two new rows may have the same
#: values
_ROW = sql.SQL(
    "(SELECT coalesce((SELECT (SELECT count(*) FROM ONLY {1} lab_other WHERE lab_other.ctid < lab_row.ctid) "
    "|| (to_jsonb(lab_row) - {0}::text[])::text FROM ONLY {1} lab_row WHERE {2} = "
    "lab_key), 'random') FROM (SELECT {3} AS lab_key) lab_outer)"
)
#: how many times in the column are earlier
_RANK = sql.SQL(
    "(SELECT 'now ' || count(DISTINCT lab_row.{}) FROM ONLY {} lab_row, (SELECT {} AS lab_time) lab_outer "
    "WHERE lab_row.{} < lab_time)"
)


def can_be_told(kind: str) -> bool:
    """Of a column of this type, can what the server has written be told from what others have?"""
    return kind in _TIMES or kind == "uuid"


@dataclass(frozen=True)
class ByServer:
    """`columns`: (table, column) → its type, where the server may write by itself. `since`: when the setup was over, by
    its clock. `keys`: random keys that mean something. `tables`: those to which rows may refer by a random key, by
    their oids."""

    since: datetime
    columns: dict[tuple[str, str], str] = field(default_factory=dict)
    keys: frozenset[str] = frozenset()
    tables: Mapping[int, Table] = field(default_factory=dict)

    def has_written(self, kind: str, value: Any) -> bool:
        if kind == "uuid":
            return (
                self.tells_keys and value is not None and str(value).replace("-", "").lower() not in self.keys
            )
        return kind in _TIMES and self._is_of_now(value)

    @property
    def tells_keys(self) -> bool:
        return len(self.keys) <= MOST_KEYS

    def _is_of_now(self, value: Any) -> bool:
        try:
            at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        except ValueError:
            return False
        if at.tzinfo:
            return self.since <= at <= datetime.now(UTC) + _SKEW
        at, more = at.replace(tzinfo=UTC), _ANYWHERE
        return self.since - more <= at <= datetime.now(UTC) + more

    def told(self, table: Table, name: str) -> sql.Composable:
        """What the contents show of this column."""
        column, kind = sql.Identifier(name), self.columns.get((table.title, name), "")
        if kind == "uuid":
            keys = sql.Literal("{" + ",".join(sorted(self.keys)) + "}")
            unknown = sql.SQL("{0} IS NOT NULL AND {0} <> ALL({1}::uuid[])").format(column, keys)
            return _CASE.format(unknown, self._row(table, name), column)
        if kind not in _TIMES:
            return column
        forms = _WITH_ZONE if kind.endswith("with time zone") else _WITHOUT_ZONE
        times = [sql.SQL(form).format(column) for form in forms]
        since = sql.Literal(self.since.isoformat())
        between = sql.SQL(" OR ").join([_BETWEEN.format(each, since) for each in times])
        rank = _RANK.format(column, table.quoted, column, column)
        return _CASE.format(between, rank, column)

    def told_by_row(self, table: Table) -> list[str]:
        """The columns of which it counts to which row they refer."""
        return [name for name, to in table.refers if to in self.tables]

    def _row(self, table: Table, name: str) -> sql.Composable:
        """What is told of a random key: to which row it refers, if it does."""
        found = self.tables.get(dict(table.refers).get(name, 0))
        if not found:
            return sql.Literal("random")
        others = sql.Literal([column for title, column in self.columns if title == found.title])
        key = sql.Identifier("lab_row", found.surrogate)
        return _ROW.format(others, found.quoted, key, sql.Identifier(name))


def shown_of(by_server: ByServer | None, title: str, columns: Sequence[str]) -> Callable[[int, Any], Any]:
    """What makes a state of a value, by the place of its column: the same for rows that the explorer reads itself."""
    kinds = [by_server.columns.get((title, each), "") if by_server else "" for each in columns]

    def shown(place: int, value: Any) -> Any:
        written = by_server and kinds[place] and by_server.has_written(kinds[place], value)
        return "by the server" if written else value

    return shown


def keys_among(known: frozenset[str]) -> frozenset[str]:
    """The random keys in these constants (fresh.py)."""
    return frozenset(each for each in known if _KEY.fullmatch(each))
