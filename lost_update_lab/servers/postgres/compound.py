"""Which commands read rows, and write by what they have read. Outside of a transaction, too, others can come between:

    A: UPDATE job SET owner = 'A' WHERE id = (SELECT id FROM job WHERE owner IS NULL LIMIT 1)
    B:      the same, before A has committed: reads job 1, waits for A, and takes job 1 over

So it is explored as the transaction that it is: it is executed, and then it commits (gates/postgres/gate.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

#: functions that may look at tables, and what calls functions where no text shows it: tables with triggers, or with
#: constraints that call one; views
CALLED = (
    "SELECT proname FROM pg_proc p JOIN pg_language l ON l.oid = prolang JOIN pg_namespace n ON n.oid = pronamespace "
    "WHERE lanname NOT IN ('internal', 'c') AND provolatile <> 'i' AND nspname !~ '^(pg_|explorer|information_schema)' "
    "UNION SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
    "WHERE nspname !~ '^(pg_|explorer|information_schema)' AND (relkind = 'v' "
    "OR EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal) "
    "OR EXISTS (SELECT FROM pg_constraint k JOIN pg_depend d ON d.objid = k.oid WHERE k.conrelid = c.oid "
    "AND d.classid = 'pg_constraint'::regclass AND d.refclassid = 'pg_proc'::regclass AND d.refobjid >= 16384))"
)
_WRITES = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|MERGE|WITH|SELECT)\b", re.IGNORECASE)
#: beside its target it names another table, or the same once more
_READS = re.compile(
    r"\s*(?:INSERT\b.*\bSELECT\b|UPDATE\b.*\b(?:SELECT|FROM)\b|DELETE\b.*\b(?:SELECT|USING)\b|MERGE\b"
    r"|WITH\b.*\b(?:INSERT|UPDATE|DELETE|MERGE)\b)",
    re.IGNORECASE | re.DOTALL,
)
_WORD = re.compile(r"\w+")


class Compound:
    """`ask`: one round trip beside the gates."""

    def __init__(self, ask: Callable[[bytes], list[Any]]) -> None:
        self._ask = ask
        self._known: dict[str, bool] = {}

    def __contains__(self, text: str) -> bool:
        """`text`: a command that writes, or may do so."""
        statement = text.partition(" ← ")[0]
        if statement not in self._known:
            self._known[statement] = bool(_READS.match(statement)) or self._calls(statement)
        return self._known[statement]

    def _calls(self, statement: str) -> bool:
        words = {word.lower() for word in _WORD.findall(statement)}
        return bool(_WRITES.match(statement)) and not self._called.isdisjoint(words)

    @cached_property
    def _called(self) -> set[str]:
        return {(name or b"").decode().lower() for (name,) in self._ask(b"called")}
