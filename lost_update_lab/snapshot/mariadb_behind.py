"""What a command of MariaDB may touch without naming it: by a view, a routine or a trigger, or by a foreign key.

UPDATE account …          → a trigger of account: UPDATE total …            → total
DELETE FROM account …     → a foreign key of payment, ON DELETE CASCADE     → payment
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection

#: by the name that a command says: the text behind it
SOURCES = """
SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = DATABASE()
UNION ALL SELECT routine_name, routine_definition FROM information_schema.routines WHERE routine_schema = DATABASE()
UNION ALL SELECT event_object_table, action_statement FROM information_schema.triggers
WHERE event_object_schema = DATABASE() AND trigger_name NOT LIKE 'explorer\\_%'
"""
#: tables whose rows change with those of the table that they refer to
_CHILDREN = """
SELECT referenced_table_name, table_name FROM information_schema.referential_constraints
WHERE constraint_schema = DATABASE()
AND (delete_rule NOT IN ('RESTRICT', 'NO ACTION') OR update_rule NOT IN ('RESTRICT', 'NO ACTION'))
"""
_WORD = re.compile(r"\w+")
#: a command that a routine puts together: what it names is not known
_COMPUTED = frozenset({"prepare", "immediate"})


class Behind:
    """`run`: executes a statement past the gates."""

    def __init__(self, run: Callable[[str], tuple[tuple[object, ...], ...]]) -> None:
        self._words = defaultdict[str, set[str]](set)
        self._reached: dict[str, Collection[str] | None] = {}
        for name, text in run(SOURCES):
            self._words[str(name).lower()] |= words(str(text or ""))
        for parent, child in run(_CHILDREN):
            self._words[str(parent).lower()].add(str(child).lower())

    def reached(self, text: str) -> Collection[str] | None:
        """All words that stand in the command, and in what is behind it. None: that is not known."""
        if text not in self._reached:
            self._reached[text] = self._all_words(text)
        return self._reached[text]

    def _all_words(self, text: str) -> Collection[str] | None:
        found, new = set[str](), words(text)
        while new:
            found |= new
            more = set().union(*(self._words[each] for each in new & self._words.keys()))
            if more & _COMPUTED:
                return None
            new = more - found
        return found


def words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}
