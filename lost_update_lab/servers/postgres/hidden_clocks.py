"""Where PostgreSQL's clock is asked, and no command shows it: in the DEFAULT of a column, in a function, in a view.

A DEFAULT can be made virtual (virtual_defaults.py). A function or a view cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any

from lost_update_lab.servers.compound import with_naming, words_of
from lost_update_lab.servers.filled_columns import FilledColumns
from lost_update_lab.servers.postgres.clock_words import asks, cuts, decides
from lost_update_lab.servers.postgres.stamped import TIME_COLUMNS, StampedColumns
from lost_update_lab.servers.stamps import compared, writes
from lost_update_lab.snapshot.catalogue import OF_THE_USER, OWN

#: a table, a column of it with a default, and the default; that of a domain, too
DEFAULTS = (
    "SELECT relname, attname, pg_get_expr(adbin, adrelid) FROM pg_attrdef "  # noqa: S608  (names of our own)
    "JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum JOIN pg_class c ON c.oid = adrelid "
    f"JOIN pg_namespace n ON n.oid = relnamespace WHERE {OF_THE_USER} "
    "UNION SELECT relname, attname, typdefault FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "
    "JOIN pg_namespace n ON n.oid = relnamespace JOIN pg_type t ON t.oid = atttypid "
    f"WHERE typtype = 'd' AND typdefault IS NOT NULL AND NOT attisdropped AND {OF_THE_USER}"
)
#: tables with a column of times that are cut, as timestamptz(0) is
CUT = (
    "SELECT relname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "  # noqa: S608  (names of our own)
    "JOIN pg_namespace n ON n.oid = relnamespace WHERE atttypmod BETWEEN 0 AND 5 AND NOT attisdropped AND atttypid IN "
    f"('timestamptz'::regtype, 'timestamp'::regtype, 'timetz'::regtype, 'time'::regtype) AND {OF_THE_USER}"
)
CLOCK_QUESTIONS = {b"defaults": DEFAULTS, b"times": TIME_COLUMNS, b"cut": CUT}


class HiddenClocks:
    """`ask`: one round trip beside the gates. `sources`: asks for functions and views, with their texts. `with_above`:
    these tables, and what writes to one unseen."""

    def __init__(
        self,
        ask: Callable[[bytes], list[Any]],
        sources: Callable[[], list[tuple[str, str]]],
        with_above: Callable[[set[str]], set[str]],
    ) -> None:
        self._ask, self._sources, self._with_above = ask, sources, with_above
        self._known: dict[tuple[str, bool], str] = {}
        self.stamped = StampedColumns(lambda: {name for (name,) in self._names(b"times")})

    def asked_in(self, text: str, timed: bool) -> str:
        """What this command names that asks the server's own clock where no gate sees it. "": nothing. `timed`: a time
        counts in this command, so one that a DEFAULT has written would too. That also counts where it is compared with
        another one, or where the latest row does."""
        statement = text.partition(" ← ")[0]
        if (statement, timed) not in self._known:
            named = self.filled.named_in(statement)
            stamps = named if timed else compared(named, statement)
            found = sorted(self._asking & words_of(statement)) + sorted(stamps)
            self._known[statement, timed] = found[0] if found else ""
        return self._known[statement, timed]

    def is_default(self, name: str) -> bool:
        """Is what `asked_in` found a column?"""
        return name not in self._asking

    @cached_property
    def _asking(self) -> set[str]:
        """Functions and views in which the clock decides."""
        return {name for name, text in self._sources() if decides(text)}

    @cached_property
    def _defaults(self) -> list[tuple[str, ...]]:
        return self._names(b"defaults")

    @cached_property
    def filled(self) -> FilledColumns:
        """By the server's own clock."""
        return self._filled(
            lambda text: asks(text) or bool(words_of(text) & self._functions), self._by_triggers
        )

    @cached_property
    def virtual(self) -> FilledColumns:
        """By the explorer's (virtual_defaults.py)."""
        return self._filled(lambda text: f"{OWN[0]}." in text)

    def _filled(self, by: Callable[[str], bool], others: Collection[tuple[str, str]] = ()) -> FilledColumns:
        """With the columns that are generated from one."""
        found = {(table, column) for table, column, text in self._defaults if by(text)} | {*others}
        texts = [((table, column), words_of(text)) for table, column, text in self._defaults]
        while more := {
            of for of, words in texts if of not in found and any((of[0], w) in found for w in words)
        }:
            found |= more
        return self.seen_of(found)

    @cached_property
    def _functions(self) -> set[str]:
        """Those that ask for the time, and views."""
        asking = {name for name, text in self._sources() if asks(text)}
        return with_naming(asking, self._sources())

    @cached_property
    def _by_triggers(self) -> set[tuple[str, str]]:
        """The columns of times, each with its table, into which a trigger may write it."""
        texts = [(name, words_of(text)) for name, text in self._sources() if asks(text)]
        return {
            (table, column)
            for name, words in texts
            if "new" in words
            for table in self._with_above({name})
            for column in words & self.stamped.times
        }

    def seen_of(self, found: set[tuple[str, str]]) -> FilledColumns:
        """These columns, each with its table, and what shows them by another name."""
        columns = {column for _, column in found}
        naming = with_naming(columns, self._sources()) - columns if found else set[str]()
        return FilledColumns(columns, self._with_above({table for table, _ in found}), naming)

    def cuts(self, text: str) -> bool:
        """Does this command write the clock's time into a table that cuts it, or cut it itself?"""
        if cuts(text):
            return True
        return (
            asks(text) and writes(text) and not self._cutting.isdisjoint(words_of(text.partition(" ← ")[0]))
        )

    @cached_property
    def _cutting(self) -> set[str]:
        return {name for (name,) in self._names(b"cut")}

    def _names(self, question: bytes) -> list[tuple[str, ...]]:
        return [tuple((each or b"").decode().lower() for each in row) for row in self._ask(question)]
