"""Does a scenario do what the test did? It may have lost what the test had arranged: a patch, a setting, an attribute.

Then the operation takes another way, and what is found on that way says nothing about the recorded one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lost_update_lab.suggest.pairs import RecordedOperation
from lost_update_lab.suggest.touching import TABLE_NAMED, TAKES_A_LOCK

STRAYS = (
    "{who} did not do here what it did in {test}: {what}. What that test had arranged (a patch, a setting, an "
    "attribute) is not in the scenario: write it there by hand"
)
_SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|MERGE|REPLACE)\b", re.IGNORECASE)
_READS = frozenset(
    {
        "GET",
        "MGET",
        "EXISTS",
        "TTL",
        "PTTL",
        "HGET",
        "HMGET",
        "HGETALL",
        "LRANGE",
        "LLEN",
        "SMEMBERS",
        "SCARD",
    }
)
#: what a client, or a transaction, sends about itself
_BESIDES = frozenset(
    {"BEGIN", "COMMIT", "ROLLBACK", "START", "SAVEPOINT", "RELEASE", "SET", "SHOW"}
    | {"EVALSHA", "SCRIPT", "WATCH", "UNWATCH", "MULTI", "EXEC", "CLIENT", "HELLO"}
)


def strays(operation: RecordedOperation, alone: Iterable[str]) -> str:
    """How the scenario differs from the recorded call, in a sentence. "": in nothing that counts. `alone`: what the
    worker sends there with nobody beside it."""
    recorded, here = _changes(each.text for each in operation.commands), _changes(alone)
    missing = [f"no {each}" for each in sorted(recorded - here)]
    new = [f"{each} besides" for each in sorted(here - recorded)]
    if not (what := ", ".join([*missing, *new])):
        return ""
    return STRAYS.format(who=operation.title, test=operation.test, what=what)


def _changes(commands: Iterable[str]) -> set[str]:
    """The writes, and the locks, each with its table; of Redis, the words alone: its keys may be drawn."""
    return {found for each in commands if (found := _change(each))}


def _change(text: str) -> str:
    verb = text.split(maxsplit=1)[0].upper() if text.strip() else ""
    if not _SQL.match(text):
        return "" if verb in _READS or verb in _BESIDES else verb
    locks = TAKES_A_LOCK.search(text)
    if verb == "SELECT" and not locks:
        return ""
    table = next((re.sub('["`]', "", name) for name in TABLE_NAMED.findall(text)), "")
    return f"{'lock' if verb == 'SELECT' else verb} {table}".strip()
