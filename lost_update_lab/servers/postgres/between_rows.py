"""Between two rows that one command locks.

    A: INSERT INTO stock VALUES ('a', 1), ('b', 1) ON CONFLICT (id) DO UPDATE …      it has locked a
    B: INSERT INTO stock VALUES ('b', 1), ('a', 1) ON CONFLICT (id) DO UPDATE …      locks b, and waits for a
    A:                                                                               waits for b: a deadlock

A trigger for each row makes such a command wait for a lock that the explorer holds (looks.py). A command that does not
stop half-way waits half-way for one that does: so of the threads with such commands all but one stop. That one stops,
too, if another thread locks several rows where nothing can stop (a SELECT … FOR UPDATE, foreign keys that an INSERT
asks for, the inside of a function), or does not wait for locks. A transaction that locks its rows by several commands
stops between these anyway.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from lost_update_lab.servers.compound import ORDERED, SEVERAL, locks_by_reading, statement_of, words_of
from lost_update_lab.servers.draws import INSERT
from lost_update_lab.servers.postgres.plpgsql import lexemes
from lost_update_lab.snapshot.catalogue import OF_THE_USER
from lost_update_lab.telling.narrative import shortened

#: others come after so many of its rows, not after each one of a thousand
MOST = 8
#: of each table: the columns whose values are keys by themselves, and drawn or random if nobody gives them, and "*" for
#: each other key; has it foreign keys? Does a DELETE take rows of other tables along, and an UPDATE?
TABLES = f"""
SELECT relname, coalesce((
    SELECT string_agg(CASE WHEN indnkeyatts = 1 AND (attidentity <> '' OR atttypid = 'uuid'::regtype
        OR pg_get_expr(adbin, adrelid) LIKE '%nextval(%') THEN attname ELSE '*' END, ' ')
    FROM pg_index LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE indrelid = c.oid AND (indisunique OR indisexclusion)), ''),
    EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.oid AND contype = 'f'),
    EXISTS (SELECT FROM pg_constraint WHERE confrelid = c.oid AND contype = 'f' AND confdeltype IN ('c', 'n', 'd')),
    EXISTS (SELECT FROM pg_constraint WHERE confrelid = c.oid AND contype = 'f' AND confupdtype IN ('c', 'n', 'd'))
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'p') AND {OF_THE_USER}
"""  # noqa: S608  (names of our own)
UNORDERED = (
    "others do not come between the rows that a SELECT … FOR UPDATE locks ({}): two of these with different orders "
    "would end in a deadlock that no schedule shows. Give all of them the same ORDER BY"
)
_CONFLICTS = re.compile(r"\bON\s+CONFLICT\b", re.IGNORECASE)
_WAITS_FOR_NOBODY = re.compile(r"\b(?:SKIP\s+LOCKED|NOWAIT)\b", re.IGNORECASE)
_IN_A_CTE = re.compile(r"WITH\b.*\b(?:INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE | re.DOTALL)
_TAKES = re.compile(r"(DELETE|UPDATE)\b", re.IGNORECASE)

#: a worker, and its thread
Whose = tuple[int, int]


class _Keys(NamedTuple):
    """As in TABLES."""

    columns: frozenset[str]
    refers: bool
    deletes_along: bool
    updates_along: bool


class BetweenRows:
    """Which commands of which threads stop there. `ask`: executes a query."""

    def __init__(self, ask: Callable[[str], list[tuple[str, ...]]]) -> None:
        self._ask = ask
        #: what has run, as it counts here
        self._known: set[tuple[Whose, str, bool, bool, bool]] = set()
        #: a command, without its values → the threads in which one such command has changed several rows
        self._by: dict[str, set[Whose]] = {}
        #: … a SELECT … FOR UPDATE → those for which it has locked several
        self._reads: dict[str, set[Whose]] = {}
        #: those that lock several where nothing stops, or wait for nobody
        self._unstopped: set[Whose] = set()
        self.stopping: frozenset[tuple[Whose, str]] = frozenset()

    def has_run(self, whose: Whose, text: str, changed: int, returned: int, calls: bool) -> bool:
        """The thread's command has `changed` so many rows, and `returned` so many. `calls`: it may call a function. Do
        more commands stop from now on?"""
        if (did := (whose, text, changed >= SEVERAL, returned >= SEVERAL, calls)) in self._known:
            return False
        self._known.add(did)
        statement = statement_of(text)
        if calls or _WAITS_FOR_NOBODY.search(statement):
            self._unstopped.add(whose)
        if locks_by_reading(text):
            if returned >= SEVERAL:
                self._reads.setdefault(statement, set()).add(whose)
        elif self._rows(statement, changed) >= SEVERAL:
            into = self._into(statement)
            if self._may_wait(statement, into):
                self._by.setdefault(statement, set()).add(whose)
            if into and into.refers:
                self._unstopped.add(whose)
        before, self.stopping = self.stopping, frozenset(self._those())
        return before != self.stopping

    def stops(self, whose: Whose, text: str) -> bool:
        return (whose, statement_of(text)) in self.stopping

    def _those(self) -> set[tuple[Whose, str]]:
        found = {(whose, text) for text, those in self._by.items() for whose in those}
        last = max((whose for whose, _ in found), default=None)
        others = self._unstopped.union(*self._reads.values())
        return {each for each in found if each[0] != last or others - {each[0]}}

    def notes(self) -> list[str]:
        """Two that read in one command, in an order that they share, do not wait for each other."""
        those = set().union(*self._reads.values())
        in_order = len(self._reads) == 1 and all(ORDERED.search(text) for text in self._reads)
        if len(those) < SEVERAL or in_order:
            return []
        return [UNORDERED.format(shortened(min(self._reads), 80))]

    def _rows(self, statement: str, changed: int) -> int:
        """How many rows it may lock. SEVERAL: the number that it has changed does not show that."""
        if _IN_A_CTE.match(statement):
            return SEVERAL
        if takes := _TAKES.match(statement):
            named = [self._tables[name] for name in words_of(statement) & self._tables.keys()]
            deletes = takes[1].upper() == "DELETE"
            if any(each.deletes_along if deletes else each.updates_along for each in named):
                return SEVERAL
        return max(changed, proposed(statement))

    def _into(self, statement: str) -> _Keys | None:
        """The table into which it inserts. None: that is not known, or it is no INSERT."""
        insert = INSERT.match(statement)
        return self._tables.get(insert[1].lower()) if insert else None

    @staticmethod
    def _may_wait(statement: str, into: _Keys | None) -> bool:
        """Do two that insert wait for each other's keys?"""
        if not into or "*" in into.columns or _CONFLICTS.search(statement):
            return True
        head = statement.upper().partition("VALUES")[0]
        return not into.columns.isdisjoint(words_of(head) if "(" in head else into.columns)

    @cached_property
    def _tables(self) -> dict[str, _Keys]:
        return {
            name.lower(): _Keys(frozenset(columns.lower().split()), *(each == "t" for each in flags))
            for name, columns, *flags in self._ask(TABLES)
        }


def proposed(statement: str) -> int:
    """How many rows an INSERT would insert; a row that is there already may be locked, and is not counted as changed.
    SEVERAL, if it does not show that. 0: it is no INSERT."""
    if not INSERT.match(statement):
        return 0
    depth, found = 0, [0]
    for word in (each.word for each in lexemes(statement)):
        if not depth and word in ("SELECT", "TABLE"):
            return SEVERAL
        if not depth and word == "VALUES":
            found.append(0)
        depth += {"(": 1, ")": -1}.get(word, 0)
        found[-1] += word == "(" and depth == 1
        if not depth and word in ("ON", "RETURNING"):
            break
    return found[-1] if len(found) > 1 else 0
