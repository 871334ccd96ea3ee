"""What an outcome is compared without, because the user said so: a log, a counter of tries, the time of the last visit.

explore([...], ignore=["audit_log", "account.last_seen", "redis:contention:*", "calls"])

"calls": how often mocks were called, and how many mails were sent (gates/recorded_calls.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from lost_update_lab.snapshot.catalogue import Table
from lost_update_lab.under_test.scenario import Mistake

#: before the pattern of a key
REDIS = "redis:"
MOCKS = "calls"
USAGE = "ignore takes tables, columns and patterns of keys: ignore=['audit_log', 'account.last_seen', 'redis:tries:*']"


def names_of(given: object) -> tuple[str, ...]:
    """What was given as `ignore`. Raises Mistake."""
    names = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    if not all(isinstance(each, str) and each for each in names):
        raise Mistake(f"{USAGE}, not {given!r}")
    return tuple(map(str, names))


@dataclass(frozen=True, slots=True)
class Ignored:
    """`keys`: as patterns of fnmatch."""

    tables: frozenset[str]
    columns: frozenset[tuple[str, str]]
    keys: tuple[str, ...]
    calls: bool = False

    @classmethod
    def of(cls, names: Sequence[str], tables: Collection[Table]) -> Ignored:
        """Raises Mistake if one of them names nothing."""
        titles = {table.title for table in tables}
        columns = {(table.title, each.name) for table in tables for each in table.columns}
        keys = [name for name in names if name.startswith(REDIS)]
        rows = [name for name in names if not name.startswith(REDIS) and name != MOCKS]
        for name in rows:
            if name not in titles and _parted(name) not in columns:
                raise Mistake(
                    f"ignore names no table and no column: {name!r}{_meant(name, titles, columns)}. {USAGE}"
                )
        return cls(
            frozenset(titles.intersection(rows)),
            frozenset(columns.intersection(map(_parted, rows))),
            tuple(name.removeprefix(REDIS) for name in keys),
            MOCKS in names,
        )

    def rows(self, found: Mapping[Table, Any]) -> dict[Table, Any]:
        """Those of the other tables."""
        return {table: rows for table, rows in found.items() if table.title not in self.tables}

    def values(self, found: Mapping[str, str]) -> dict[str, str]:
        """Those of the other keys."""
        return {
            key: value
            for key, value in found.items()
            if not any(fnmatchcase(key, pattern) for pattern in self.keys)
        }


def _parted(name: str) -> tuple[str, str]:
    table, _, column = name.rpartition(".")
    return table, column


def _meant(name: str, titles: Collection[str], columns: Collection[tuple[str, str]]) -> str:
    near = get_close_matches(name, [*titles, *map(".".join, columns)], 1)
    return f" ({near[0]}?)" if near else ""
