"""Which commands read rows, and write by what they have read. Outside of a transaction, too, others can come between:

    A: UPDATE job SET owner = 'A' WHERE id = (SELECT id FROM job WHERE owner IS NULL LIMIT 1)
    B:      the same, before A has committed: reads job 1, waits for A, and takes job 1 over

So it is explored as the transaction that it is: it is executed, and then it commits (the gates of PostgreSQL and of
MariaDB). Where there is one such command, every one that writes is two steps: B may read before A, which changes
one row, has committed.

Other commands, inside of a transaction too, meet a write that is under way in another way than one that is committed:
one that reads and writes; one that changes several rows, and may have chosen one of them by what was there before; a
SELECT that locks and picks (SKIP LOCKED, NOWAIT, ORDER BY, a join); each one under more than READ COMMITTED; and one
that reads a table into which an INSERT draws a number, as a smaller number may be committed after a larger one.
Where there is one of these, too, every write is two steps. Where there is none, a command that names nothing besides
its target, calls no function and fires no trigger is one step: it locks the row that it decides by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import cached_property

from lost_update_lab.model.errors import Broken
from lost_update_lab.servers.draws import INSERT

#: beside its target it names another table, or the same once more
READS_ELSEWHERE = re.compile(
    r"\s*(?:(?:INSERT|REPLACE)\b.*\b(?:SELECT|TABLE)\b|UPDATE\b.*\b(?:SELECT|FROM|(?:STRAIGHT_)?JOIN)\b|UPDATE\b[^=]*,.*\bSET\b"
    r"|DELETE\b.*\b(?:SELECT|USING|JOIN)\b|DELETE\s+(?!FROM\b).*\bFROM\b|MERGE\b|WITH\b.*\b(?:INSERT|UPDATE|DELETE|MERGE)\b"
    r"|SET\s+CONSTRAINTS\b|EXECUTE\b|DO\s+(?:\$|'|LANGUAGE\b)|(?=.*;\s*\S).*\b(?:INSERT|REPLACE|UPDATE|DELETE)\b)",
    re.IGNORECASE | re.DOTALL,
)
_LOCKS = re.compile(
    r"\bFOR\s+(?:NO\s+KEY\s+)?UPDATE\b|\bFOR\s+(?:KEY\s+)?SHARE\b|\bLOCK\s+IN\s+SHARE\b", re.IGNORECASE
)
#: which rows it locks, or their order, depends on more than each row's own condition. (LIMIT counts the rows that still
#: fit once they are locked.)
_PICKS = re.compile(
    r"\b(?:SKIP\s+LOCKED|NOWAIT|OFFSET|ORDER|JOIN|DISTINCT)\b|\bSELECT\b.*\bSELECT\b"
    r"|\bFROM\b[^()]*?,.*?\bWHERE\b",
    re.IGNORECASE | re.DOTALL,
)
_CHANGES = re.compile(r"\s*(?:INSERT|REPLACE|UPDATE|DELETE)\b", re.IGNORECASE)
#: it states in which order rows come
ORDERED = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)
_COMMENT = re.compile(r"\s*(?:--[^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|/\*.*?\*/|\()", re.DOTALL)
#: its query is in another command
_FETCHES = re.compile(r"\s*(?:FETCH|MOVE)\b", re.IGNORECASE)
_SELECTS, _TWICE = (
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (r"\s*(?:SELECT|WITH)\b", r"\bSELECT\b.*\bSELECT\b")
)
_FROM, _TRIES = (re.compile(each, re.IGNORECASE) for each in (r"\bFROM\b", r"\bpg_try_advisory_\w+\s*\("))
_CHANGING = re.compile(r"\b(?:INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
#: FOR UPDATE OF some of the tables
_OF_SOME = re.compile(r"\b(?:UPDATE|SHARE)\s+OF\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r'"([^"]+)"')
#: from so many rows on, one may have become one of them only by what another command does to another one
SEVERAL = 2


class Compound:
    """`called`: the names of functions that may look at tables, and of what calls functions where no text shows it:
    tables with triggers, views. `looks`: others may come between the look and the lock of such a command;
    `watched` says so."""

    def __init__(self, called: Callable[[], Iterable[str]], looks: bool = False) -> None:
        self._ask, self.watched = called, looks
        self._known: dict[str, bool] = {}
        self._was_seen = False
        #: has any command named one of the functions? A cursor may call it, as its rows are fetched
        self._any_calls = False
        #: has any command looked by more than the rows that it locks?
        self.any_looks = False
        #: tables into which commands insert outside of a transaction that draw a number, and what other commands name
        self._numbered: set[str] = set()
        self._named: set[str] = set()

    def begins(self, text: str, writes: bool = True, strict: bool = False, numbers: bool = False) -> bool:
        """Is this the first command to which it makes a difference that a write is under way? Then everything has to
        begin again. `text`: any command, inside of a transaction too. `writes`: or may do so. `strict`: under
        more than READ COMMITTED. `numbers`: it is outside of a transaction, and draws a number."""
        if writes and not self.any_looks and self.looks_first(text):  # from the next run on it is held there
            self.any_looks = self._was_seen = True
            return True
        if self._was_seen:
            return False
        statement = text.partition(" ← ")[0]
        if numbers and (insert := INSERT.match(statement)):
            self._numbered.add(insert[1].lower())
        else:
            self._named |= words_of(statement)
        misses = not self._numbered.isdisjoint(self._named)
        self._was_seen = misses or (writes and (strict or text in self or _picks(statement)))
        return self._was_seen

    def changed(self, rows: int) -> bool:
        """Is this the first command outside of a transaction that has changed several `rows`? Then likewise."""
        if self._was_seen or rows < SEVERAL:
            return False
        self._was_seen = True
        return True

    def __contains__(self, text: str) -> bool:
        """`text`: a command that writes, or may do so."""
        statement = statement_of(text)
        if _FETCHES.match(statement):
            self._known[statement] = self._any_calls
        elif statement not in self._known:
            self._known[statement] = bool(READS_ELSEWHERE.match(statement)) or self._calls(statement)
        return self._known[statement] or (self._was_seen and bool(_CHANGES.match(statement)))

    def looks_first(self, text: str) -> bool:
        """Does this command read by more than the rows that it locks, or call a function that may?"""
        return self.watched and text in self and self._known[statement_of(text)]

    def _calls(self, statement: str) -> bool:
        calls = names_one(statement, self._called)
        self._any_calls |= calls
        return calls

    @cached_property
    def _called(self) -> set[str]:
        return {name.lower() for name in self._ask()}


def looks_elsewhere(text: str) -> bool:
    """Is it a SELECT that locks the rows of one table, and looks at other rows, which it does not lock? What changes
    rows locks them as it looks, or is held there."""
    statement = statement_of(text)
    return locks_by_reading(text) and bool(_TWICE.search(statement) or _OF_SOME.search(statement))


def tries_names(text: str) -> bool:
    """Is it a SELECT that tries an advisory lock for each row at which it looks? What it knows of the row may be older
    than the lock."""
    statement = statement_of(text)
    return bool(_SELECTS.match(statement) and _FROM.search(statement) and _TRIES.search(statement))


def locks_by_reading(text: str) -> bool:
    """Is it a SELECT that locks rows, and changes none?"""
    statement = statement_of(text)
    locks = bool(_SELECTS.match(statement) and _LOCKS.search(statement))
    return locks and not _CHANGING.search(_LOCKS.sub("", statement))


#: an UPDATE like `SET balance = balance - 40`, which uses the present value
RELATIVE = re.compile(
    r'\bSET\b.*?["`]?(\w+)["`]?\s*=\s*\(?\s*(?:["`]?\w+["`]?\.)?["`]?\1\b', re.IGNORECASE | re.DOTALL
)


def statement_of(text: str) -> str:
    """Without its values, from its first word on."""
    return without_comments(text.partition(" ← ")[0])


def words_of(statement: str) -> set[str]:
    """Its words, and its names in double quotes, in lower case."""
    return {word.lower() for word in (*_WORD.findall(statement), *_QUOTED.findall(statement))}


def names_one(statement: str, names: Collection[str]) -> bool:
    """Does it name one of these, in lower case? An operator's name consists of signs."""
    return not words_of(statement).isdisjoint(names) or any(
        not name[:1].isalnum() and name in statement for name in names
    )


def with_naming(names: Collection[str], sources: Iterable[tuple[str, str]]) -> set[str]:
    """These names, and the functions and views that name one, or that name one of those."""
    texts, found = [(name, words_of(text)) for name, text in sources], set(names)
    while more := {name for name, words in texts if name not in found and words & found}:
        found |= more
    return found


class Unexplored:
    """Why a search proves nothing that has found no loss: others could not come where they would have to."""

    def __init__(self) -> None:
        #: a command looks, and locks later; a function locks by several statements. None: that was not seen
        self.looks: Broken | None = None
        self.function: Broken | None = None

    def reason(self, commits: int) -> Broken | None:
        """As in Server.unexplored. One transaction that comes between a look and a lock does the same as one behind
        both of them, or one in whose middle the command waits."""
        return self.function or (self.looks if commits > 1 else None)


def _picks(statement: str) -> bool:
    """Does it lock rows, and which ones, or in which order, not by each row alone?"""
    return bool(_LOCKS.search(statement) and _PICKS.search(statement))


def without_comments(statement: str) -> str:
    """The statement from its first word on."""
    while found := _COMMENT.match(statement):
        statement = statement[found.end() :]
    return statement
