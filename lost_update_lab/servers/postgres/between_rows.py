"""Between two rows that one command locks.

    A: INSERT INTO stock VALUES ('a', 1), ('b', 1) ON CONFLICT (id) DO UPDATE …      it has locked a
    B: INSERT INTO stock VALUES ('b', 1), ('a', 1) ON CONFLICT (id) DO UPDATE …      locks b, and waits for a
    A:                                                                               waits for b: a deadlock

A trigger for each row makes such a command wait for a lock that the explorer holds (looks.py). A command that does not
stop half-way waits half-way for one that does: so of the workers with such commands all but one stop. A transaction
that locks its rows by several commands stops between these anyway. No trigger hears of a SELECT … FOR UPDATE.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from lost_update_lab.servers.compound import SEVERAL
from lost_update_lab.servers.draws import INSERT
from lost_update_lab.servers.postgres.plpgsql import lexemes
from lost_update_lab.snapshot.catalogue import NOT_THE_USERS
from lost_update_lab.telling.narrative import shortened

#: others come after so many of its rows, not after each one of a thousand
MOST = 8
#: two that insert into one of these can wait for each other's key: it has a unique index of which no column is drawn or
#: random
KEYED = f"""
SELECT DISTINCT relname FROM pg_index i JOIN pg_class c ON c.oid = indrelid JOIN pg_namespace n ON n.oid = relnamespace
WHERE (indisunique OR indisexclusion) AND {NOT_THE_USERS} AND NOT EXISTS (
    SELECT FROM pg_attribute a LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
    WHERE attrelid = indrelid AND attnum = ANY(indkey) AND (attidentity <> '' OR atttypid = 'uuid'::regtype
        OR pg_get_expr(adbin, adrelid) LIKE '%nextval(%')
)
"""  # noqa: S608  (names of our own)
UNORDERED = (
    "others do not come between the rows that a SELECT … FOR UPDATE locks ({}): two of these with different orders "
    "would end in a deadlock that no schedule shows. Give all of them the same ORDER BY"
)
_ORDERED = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)
_CONFLICTS = re.compile(r"\bON\s+CONFLICT\b", re.IGNORECASE)


class BetweenRows:
    """Which commands of which workers stop there. `ask`: executes a query."""

    def __init__(self, ask: Callable[[str], list[tuple[str, ...]]]) -> None:
        self._ask = ask
        #: a command, without its values → the workers of which one such command has changed several rows
        self._by: dict[str, set[int]] = {}
        #: … a SELECT … FOR UPDATE → the workers for which it has locked several
        self._reads: dict[str, set[int]] = {}
        self._keyed: set[str] | None = None
        #: (worker, command)
        self.stopping: frozenset[tuple[int, str]] = frozenset()

    def changed(self, worker: int, text: str, rows: int, reads: bool) -> bool:
        """The worker's command has changed `rows`, or locked them as it `reads`. Do more commands stop from now on?"""
        statement = text.partition(" ← ")[0]
        if max(rows, proposed(statement)) < SEVERAL or not (reads or self._may_wait(statement)):
            return False
        (self._reads if reads else self._by).setdefault(statement, set()).add(worker)
        before, self.stopping = self.stopping, frozenset(self._those())
        return before != self.stopping

    def stops(self, worker: int, text: str) -> bool:
        return (worker, text.partition(" ← ")[0]) in self.stopping

    def _those(self) -> set[tuple[int, str]]:
        found = {(worker, text) for text, workers in self._by.items() for worker in workers}
        readers = set().union(*self._reads.values())
        if not readers:
            last = max(worker for worker, _ in found)
            return {each for each in found if each[0] != last}
        return {each for each in found if readers - {each[0]}}

    def notes(self) -> list[str]:
        """Two that read in one command, in an order that they share, do not wait for each other."""
        workers = set().union(*self._reads.values())
        in_order = len(self._reads) == 1 and all(_ORDERED.search(text) for text in self._reads)
        return (
            [] if len(workers) < SEVERAL or in_order else [UNORDERED.format(shortened(min(self._reads), 80))]
        )

    def _may_wait(self, statement: str) -> bool:
        insert = INSERT.match(statement)
        if not insert or _CONFLICTS.search(statement):
            return True
        if self._keyed is None:
            self._keyed = {name.lower() for (name,) in self._ask(KEYED)}
        return insert[1].lower() in self._keyed


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
