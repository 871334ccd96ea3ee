"""What is behind a command of MariaDB: the texts of views, routines and triggers, and DEFAULTs. One may ask for the
clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from lost_update_lab.servers.compound import with_naming
from lost_update_lab.servers.filled_columns import FilledColumns
from lost_update_lab.servers.mariadb import clock_words
from lost_update_lab.servers.mariadb.way import remembers_inside
from lost_update_lab.servers.stamps import compared
from lost_update_lab.snapshot.mariadb_behind import SOURCES, words

#: functions and views, and tables with triggers
CALLED_IN_MARIADB = """
SELECT routine_name FROM information_schema.routines WHERE routine_schema = DATABASE() AND routine_type = 'FUNCTION'
UNION ALL SELECT table_name FROM information_schema.views WHERE table_schema = DATABASE()
UNION ALL SELECT event_object_table FROM information_schema.triggers
WHERE event_object_schema = DATABASE() AND trigger_name NOT LIKE 'explorer\\_%'
"""
#: a table, a column of it, and what may fill it
DEFAULTS = """
SELECT table_name, column_name, CONCAT(COALESCE(column_default, ''), ' ', extra) FROM information_schema.columns
WHERE table_schema = DATABASE()
"""
_SELECT = re.compile(r"\s*SELECT\b", re.IGNORECASE)


class HiddenOnMariadb:
    """`ask`: one round trip beside the gates. `virtual_defaults`: the times that a DEFAULT writes are a part of each
    state. (The session's `timestamp` answers there, too.)"""

    def __init__(self, ask: Callable[[str], tuple[tuple[Any, ...], ...]]) -> None:
        self._ask = ask
        self._found: dict[str, tuple[str, ...]] = {}
        self.virtual_defaults = False

    def by_the_clock(self, text: str, timed: bool) -> bool:
        """Does the server's clock count in this command? Once it has decided something (`timed`), each written time
        does."""
        inside = self.clocks_in(text)
        if timed:
            return clock_words.asks(text) or bool(inside) or self._fills(text)
        return clock_words.decides(text) or any(map(clock_words.decides, inside))

    def _fills(self, text: str) -> bool:
        """Might a DEFAULT write the time here? A SELECT writes by a routine or a view at most."""
        writes = not _SELECT.match(text) or self.behind(text)
        return bool(self.virtual_defaults and writes and self.filled.written_by(text))

    def asks_inside(self, text: str) -> bool:
        """Does a view, a routine or a trigger in this command ask for the time?"""
        return any(map(clock_words.asks, self.clocks_in(text)))

    def digits(self, text: str) -> frozenset[int]:
        """How many digits the times have after the point that it asks for, or that a DEFAULT writes."""
        texts = [text, *self.clocks_in(text), *(self._clock_defaults if self.virtual_defaults else ())]
        return frozenset[int]().union(*map(clock_words.digits, texts))

    def clocks_in(self, text: str) -> tuple[str, ...]:
        """The texts behind what this command names that ask for the time."""
        if text not in self._found:
            self._found[text] = tuple(each for each in self.behind(text) if clock_words.asks(each))
        return self._found[text]

    def remembers(self, text: str) -> bool:
        """Does a routine, a trigger or a view behind it set, or ask for, what the session remembers?"""
        return any(map(remembers_inside, self.behind(text)))

    def behind(self, text: str) -> list[str]:
        """The texts of the views, routines and triggers that the command names."""
        names = words(text) & self._sources.keys() if self._sources else ()
        return [each for name in sorted(names) for each in self._sources[name]]

    def told_by_default(self, text: str) -> str:
        """As FilledColumns.told_in, for times that are not a part of a state."""
        return "" if self.virtual_defaults else self.filled.told_in(text)

    def compares_default(self, text: str) -> str:
        """The column that a command compares, and that a DEFAULT fills by the server's clock. "": there is none."""
        names = () if self.virtual_defaults else self.filled.named_in(text)
        found = names if names and self.by_the_clock(text, timed=False) else compared(names, text)
        return min(found) if found else ""

    @cached_property
    def filled(self) -> FilledColumns:
        """By the server's clock."""
        return self.seen_of(
            {(str(table).lower(), str(column).lower()) for table, column, _ in self._by_clock}
        )

    def seen_of(self, found: set[tuple[str, str]]) -> FilledColumns:
        """These columns, each with its table, and what shows them by another name."""
        columns, tables = {column for _, column in found}, {table for table, _ in found}
        sources = [(name, text) for name, texts in self._sources.items() for text in texts]
        return FilledColumns(
            columns, with_naming(tables, sources), with_naming(columns, sources) - columns if found else ()
        )

    @property
    def _clock_defaults(self) -> list[str]:
        return [text for _, _, text in self._by_clock]

    @cached_property
    def _by_clock(self) -> list[tuple[str, str, str]]:
        return [(t, c, str(text)) for t, c, text in self._ask(DEFAULTS) if clock_words.asks(str(text))]

    @cached_property
    def _sources(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, text in self._ask(SOURCES):
            found.setdefault(str(name).lower(), []).append(str(text or ""))
        return found
