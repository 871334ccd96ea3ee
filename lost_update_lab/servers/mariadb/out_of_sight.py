"""What a command names that no schedule puts back, or that others see before it is committed.

    A: BEGIN; UPDATE flag SET done = 1        a table of MyISAM: everybody sees it at once, and no ROLLBACK undoes it
    B: SELECT done FROM flag                  reads 1, and A may yet crash

The same holds for the number of a sequence that is read as a table, or set. And the tables of another database of that
server stay as a schedule has left them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from lost_update_lab.model.errors import IN_ONE_DATABASE, Broken
from lost_update_lab.servers.mariadb.literals import without_literals
from lost_update_lab.servers.numbers import IN_A_ROW, NUMBER
from lost_update_lab.telling.narrative import shortened

WITHOUT_TRANSACTIONS = "others see what is written to that table before COMMIT, and no ROLLBACK undoes it"
IN_INNODB = "let the setup make that table with ENGINE=InnoDB"
IN_ANOTHER = "it uses another database of that server, which the explorer was not given"
_ENGINES = """
SELECT table_name, engine FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'
AND engine NOT IN (SELECT engine FROM information_schema.engines WHERE transactions = 'YES')
"""
_DATABASES = """
SELECT schema_name FROM information_schema.schemata WHERE schema_name <> DATABASE()
AND schema_name NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')
"""
_WORD = re.compile(r"\w+")
#: in the place of a table: in `orders.id`, orders may be a table, or another name of one
_QUALIFIED = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|IGNORE|TABLE)\s+`?(\w+)`?\s*\.\s*`?\w+", re.IGNORECASE)
_NUMBER = re.compile(r"\b(?:FROM|JOIN|SETVAL\s*\()\s*`?(\w+)`?", re.IGNORECASE)


class OutOfSight:
    """`ask`: one round trip beside the gates. `behind`: the texts of the views, routines and triggers that a command
    calls. `sequences`: their names."""

    def __init__(
        self,
        ask: Callable[[str], tuple[tuple[Any, ...], ...]],
        behind: Callable[[str], list[str]],
        sequences: Iterable[str],
    ) -> None:
        self._ask, self._behind, self._sequences = ask, behind, set(map(str.lower, sequences))
        self._known: dict[str, Broken | None] = {}

    def named_in(self, text: str) -> Broken | None:
        if text not in self._known:
            texts = [text, *self._behind(text)]
            found = (self._found(without_literals(each), text) for each in texts)
            self._known[text] = next((each for each in found if each), None)
        return self._known[text]

    def of_another(self, used: str) -> Broken | None:
        """`used`: the database of the command's connection. "": none."""
        return Broken(f"{IN_ANOTHER}: {used}", IN_ONE_DATABASE) if used.lower() in self._databases else None

    def _found(self, bare: str, text: str) -> Broken | None:
        for database in map(str.lower, _QUALIFIED.findall(bare)):
            if found := self.of_another(database):
                return found
        for name in map(str.lower, _WORD.findall(bare)):
            if engine := self._engines.get(name):
                return Broken(f"{WITHOUT_TRANSACTIONS} ({name}, {engine})", IN_INNODB)
        if numbers := self._sequences & set(map(str.lower, _NUMBER.findall(bare))):
            return Broken(f"{NUMBER} ({min(numbers)}, in {shortened(text, 80)})", IN_A_ROW)
        return None

    @cached_property
    def _engines(self) -> dict[str, str]:
        return {str(name).lower(): str(engine) for name, engine in self._ask(_ENGINES)}

    @cached_property
    def _databases(self) -> set[str]:
        return {str(name).lower() for (name,) in self._ask(_DATABASES)}
