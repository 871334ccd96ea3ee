"""Between the moment at which a command of MariaDB looks and the one at which it locks its first row.

    A: INSERT INTO total SELECT 1, sum(n) FROM item ON DUPLICATE KEY UPDATE …     has looked, and sees no item of B's
    B: INSERT INTO item …; then the same as A                                     commits both
    A:                                                      locks the row, and writes what it has seen: B's is lost

Under READ COMMITTED an INSERT locks nothing of what it looks at; under REPEATABLE READ, all. A trigger of each table
makes its first row wait for a lock of a name that the explorer holds, and so in a function. An UPDATE or a DELETE has
no such place: its triggers come when the row is locked. Most of them lock the row first, and look then. Of those that
do not, of a SELECT … FOR UPDATE that also looks elsewhere, and of a routine that locks rows by several statements, it
is only noted that they were seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from lost_update_lab.model.errors import LOOKS_BY_ITSELF, STATEMENTS_APART, Broken
from lost_update_lab.servers.compound import Unexplored, looks_elsewhere
from lost_update_lab.snapshot.mariadb_behind import SOURCES, words
from lost_update_lab.telling.narrative import shortened

Ask = Callable[[str], tuple[tuple[Any, ...], ...]]

#: the first part of the names of the triggers, and of the lock that a session waits for; its number follows
NAME = "explorer_looks"
UNMET = "in one command, MariaDB looks at rows and locks others later, and no schedule comes between"
LOCKS_TWICE = "in one routine, MariaDB locks rows by several statements, and no schedule comes between"
_LOCK = f"CONCAT('{NAME}_', CONNECTION_ID())"
_MAKE = (
    "CREATE TRIGGER `{name}` BEFORE INSERT ON `{table}` FOR EACH ROW "
    f"DO GET_LOCK({_LOCK}, 86400) AND RELEASE_LOCK({_LOCK})"
)
_MADE = """
SELECT trigger_name FROM information_schema.triggers
WHERE trigger_schema = DATABASE() AND trigger_name LIKE 'explorer\\_looks\\_%'
"""
_WAITS = "SELECT 1 FROM information_schema.processlist WHERE id = {} AND state = 'User lock'"
_CHANGES = re.compile(r"\s*(?:UPDATE|DELETE)\b.*?\bWHERE\b(.*)", re.IGNORECASE | re.DOTALL)
_LOCKS = re.compile(
    r"\s*(?:SELECT|WITH)\b.*\b(?:FOR\s+UPDATE|LOCK\s+IN\s+SHARE)\b", re.IGNORECASE | re.DOTALL
)
_SELECT = re.compile(r"\bSELECT\b", re.IGNORECASE)
#: in a routine or a trigger
_LOCKS_ROWS = re.compile(r"(?<!KEY )\bUPDATE\b|\bDELETE\b|\bLOCK\s+IN\s+SHARE\b", re.IGNORECASE)
_WRITES = re.compile(r"\b(?:INSERT|REPLACE)\b(?!\s*\()", re.IGNORECASE)
_REPEATS = re.compile(r"\b(?:LOOP|WHILE|REPEAT|FOR)\b(?!\s*(?:\(|UPDATE\b|EACH\b))", re.IGNORECASE)
_NAMED = re.compile(r"\bGET_LOCK\b", re.IGNORECASE)
#: how EXPLAIN says that a table is read from its beginning to its end: the condition is asked row by row, locked before
_WHOLE = ("ALL", "index")


class MariadbLooks:
    """`ask`: one round trip beside the gates, always in the same session. `tables`: those that a schedule may write.
    `watched`: False if whoever explores them knows all that they send."""

    def __init__(self, ask: Ask, tables: Iterable[str], watched: bool) -> None:
        self._ask, self._tables, self.watched = ask, tuple(tables), watched
        self.made = False
        self._held: set[int] = set()
        self._sources: dict[str, list[str]] | None = None
        self.unexplored = Unexplored()
        self._drop()

    def make(self, wanted: bool) -> None:
        """The triggers, if they are `wanted`; between two runs, when no session uses a table."""
        if wanted and not self.made:
            for number, table in enumerate(self._tables):
                self._ask(_MAKE.format(name=f"{NAME}_{number}", table=table))
            self.made = True

    def drop(self) -> None:
        if self.made:
            self.made = False
            self._ask("SELECT RELEASE_ALL_LOCKS()")  # first of all, whoever is held still goes on
            self._drop()

    def _drop(self) -> None:
        for (name,) in self._ask(_MADE):
            self._ask(f"DROP TRIGGER `{name}`")

    def hold(self, session: int, text: str) -> None:
        """The next command of this session, which is this one, waits once it has looked."""
        if self.made and not _NAMED.search(text) and not (_CHANGES.match(text) or _LOCKS.match(text)):
            self._ask(f"SELECT GET_LOCK('{NAME}_{session}', 0)")
            self._held.add(session)

    def holds(self, session: int) -> bool:
        return session in self._held

    def waits(self, session: int) -> bool:
        """Has its command looked, and does it wait for nothing but this?"""
        return self.holds(session) and bool(self._ask(_WAITS.format(session)))

    def let_go(self, session: int) -> None:
        """It goes on. Does nothing to a session that is not held."""
        if self.holds(session):
            self._held.discard(session)
            self._ask(f"SELECT RELEASE_LOCK('{NAME}_{session}')")

    def note(self, text: str, locks_what_it_sees: bool) -> None:
        """This command is about to be executed. `locks_what_it_sees`: in an UPDATE or a DELETE, what an inner SELECT
        reads is locked: under REPEATABLE READ."""
        if not self.watched:
            return
        unexplored, routines = self.unexplored, self.routines_in(text)
        if not unexplored.function and sum(map(_locks, routines)) > 1:
            unexplored.function = Broken(f"{LOCKS_TWICE} ({shortened(text, 80)})", STATEMENTS_APART)
        if not unexplored.looks and (
            self._looks_first(text, locks_what_it_sees) or any(map(_locks_later, routines))
        ):
            unexplored.looks = Broken(f"{UNMET} ({shortened(text, 80)})", LOOKS_BY_ITSELF)

    def _looks_first(self, text: str, locks_what_it_sees: bool) -> bool:
        if looks_elsewhere(text):
            return True
        changes = _CHANGES.match(text)
        if locks_what_it_sees or not (changes and _SELECT.search(changes[1])):
            return False
        kinds = [row[3] for row in self._ask(f"EXPLAIN {text}")]
        return kinds[0] not in _WHOLE

    def routines_in(self, text: str) -> list[str]:
        """The texts of the functions, procedures, triggers and views behind this command."""
        if self._sources is None:
            self._sources = {}
            for name, source in self._ask(SOURCES):
                self._sources.setdefault(str(name).lower(), []).append(str(source or ""))
        known, named, sources = set[str](), words(text), list[str]()
        while found := (named & self._sources.keys()) - known:
            known |= found
            newer = [source for name in found for source in self._sources[name]]
            named = set[str]().union(*map(words, newer))
            sources += newer
        return sources


def _locks(source: str) -> int:
    """By how many of its statements does a routine or a trigger lock rows? 2: by one that is repeated."""
    statements = source.split(";")
    locks = sum(bool(_LOCKS_ROWS.search(each) or _WRITES.search(each)) for each in statements)
    return 2 if locks and _REPEATS.search(source) else locks


def _locks_later(source: str) -> bool:
    """Does one of its statements look, and a later one lock rows?"""
    looked = False
    for statement in source.split(";"):
        if looked and _LOCKS_ROWS.search(statement):
            return True
        looked = looked or bool(_SELECT.search(statement))
    return False
