"""Where PostgreSQL's clock is asked, and no command shows it: in a DEFAULT, a function, a view, a condition.

All this can ask the explorer's clock instead (shadowed.py), but for the DEFAULT of a domain.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

from lost_update_lab.servers.compound import with_naming, words_of
from lost_update_lab.servers.filled_columns import FilledColumns
from lost_update_lab.servers.postgres.clock_words import asks, cuts, decides_inside, in_a_block
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
#: tables with conditions, and whether they count in a SELECT, too: those of a policy do; those of a constraint, also of
#: a column's domain, of a rule, and of a trigger (WHEN) do not
CONDITIONS = """
SELECT relname, 't', concat(pg_get_expr(polqual, polrelid), ' ', pg_get_expr(polwithcheck, polrelid))
FROM pg_policy JOIN pg_class c ON c.oid = polrelid WHERE relrowsecurity
UNION ALL SELECT relname, 'f', pg_get_constraintdef(k.oid) FROM pg_constraint k
JOIN pg_class c ON c.oid = conrelid WHERE contype = 'c'
UNION ALL SELECT relname, 'f', pg_get_constraintdef(k.oid) FROM pg_constraint k
JOIN pg_attribute ON atttypid = contypid JOIN pg_class c ON c.oid = attrelid WHERE contypid <> 0
UNION ALL SELECT tablename, 'f', definition FROM pg_rules WHERE schemaname !~ '^(pg_|information_schema)'
UNION ALL SELECT relname, 'f', pg_get_triggerdef(t.oid) FROM pg_trigger t
JOIN pg_class c ON c.oid = tgrelid WHERE tgqual IS NOT NULL AND NOT tgisinternal
"""
CLOCK_QUESTIONS = {
    b"defaults": DEFAULTS,
    b"times": TIME_COLUMNS,
    b"cut": CUT,
    b"conditions": CONDITIONS,
}
_SELECTS = re.compile(r"\s*(?:SELECT|WITH|TABLE|VALUES)\b", re.IGNORECASE)


def _is_virtual(text: str) -> bool:
    return f"{OWN[0]}." in text


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
            found = sorted(self._asking_in(statement)) + sorted(stamps)
            self._known[statement, timed] = found[0] if found else ""
        return self._known[statement, timed]

    def asks_inside(self, text: str) -> bool:
        """Does this command, which reads, ask the server's or the explorer's clock so?"""
        return bool(self.asked_in(text, timed=False)) or self.virtual_inside(text, reads=True)

    def _asking_in(self, statement: str) -> set[str]:
        """A SELECT asks no table, but for its policies."""
        if in_a_block(statement):
            return {"DO"}
        asking = self._asking & words_of(statement)
        if _SELECTS.match(statement) and not writes(statement):
            asking &= {name for name, _ in self._sources()} | self._with_policy(asks)
        return asking

    @cached_property
    def _asking(self) -> set[str]:
        """Functions and views in which the clock decides, tables with such a condition, and what calls, or writes to,
        one unseen."""
        inside = {name for name, text in self._sources() if decides_inside(text)}
        return self._with_above(inside | self._with_condition(asks, inside))

    def _with_policy(self, by: Callable[[str], bool]) -> set[str]:
        """The tables that have such a one."""
        return {name for name, policy, text in self._conditions if policy == "t" and by(text)}

    def _with_condition(self, by: Callable[[str], bool], asking: set[str]) -> set[str]:
        """The tables that have such a one, or one that calls a function of these."""
        return {name for name, _, text in self._conditions if by(text) or words_of(text) & asking}

    @cached_property
    def _conditions(self) -> list[tuple[str, ...]]:
        return self._names(b"conditions")

    @cached_property
    def _defaults(self) -> list[tuple[str, ...]]:
        return self._names(b"defaults")

    @cached_property
    def filled(self) -> FilledColumns:
        """By the server's own clock."""
        return self.seen_of(self._filled(asks))

    @cached_property
    def virtual(self) -> FilledColumns:
        """By the explorer's (shadowed.py), and what calls a function that asks it."""
        found, asking = self._filled(_is_virtual), self._asking_virtually
        tables = {table for table, _ in found} | self._with_condition(_is_virtual, asking)
        return FilledColumns({column for _, column in found}, self._with_above(tables | asking), asking)

    def virtual_inside(self, text: str, reads: bool) -> bool:
        """Might this command write, or ask for, the explorer's time where that is not in its text?"""
        words = words_of(text.partition(" ← ")[0])
        return (not reads and self.virtual.written_by(text)) or bool(words & self._asking_virtually)

    @cached_property
    def _asking_virtually(self) -> set[str]:
        """Functions, views, and tables with such a policy."""
        return with_naming(self._functions(_is_virtual) | self._with_policy(_is_virtual), self._sources())

    def _filled(self, by: Callable[[str], bool]) -> set[tuple[str, str]]:
        """The columns, each with its table, that a DEFAULT or a trigger fills so, or by the value of such a column."""
        asking = self._functions(by)
        texts = [((table, column), words_of(text), by(text)) for table, column, text in self._defaults]
        texts += [(of, words, name in asking) for of, words, name in self._by_triggers]
        found = {of for of, words, asks_it in texts if asks_it or words & asking}
        while more := {
            of for of, words, _ in texts if of not in found and any((of[0], w) in found for w in words)
        }:
            found |= more
        return found

    def _functions(self, by: Callable[[str], bool]) -> set[str]:
        """Those that ask for the time, and views that do."""
        return with_naming({name for name, text in self._sources() if by(text)}, self._sources())

    @cached_property
    def _by_triggers(self) -> list[tuple[tuple[str, str], set[str], str]]:
        """The columns of times, each with its table, into which a trigger may write; the words of its function, and
        the name."""
        texts = [(name, words_of(text)) for name, text in self._sources()]
        return [
            ((table, column), words, name)
            for name, words in texts
            if "new" in words
            for table in self._with_above({name})
            for column in words & self.stamped.times
        ]

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
