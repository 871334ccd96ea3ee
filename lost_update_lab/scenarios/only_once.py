"""What a process writes once, and then knows that it has: the first run has done it, and no schedule does it again.

    CLIENT = threading.local()
    def add(amount):
        if not hasattr(CLIENT, "ready"):              in the first run only
            if not keys.exists("n"): keys.set("n", 0)     two new processes overwrite each other's "n"
            CLIENT.ready = True
        keys.incrby("n", amount)

Globals of the user's modules with plain values are put back (runs/memory.py). Other places are not: a thread's own
variables, a closure, an object, a library's class. The commands show that there is one: the first run has sent a write
that the second, in the same order and from the same rows, does not send.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from lost_update_lab.model.commands import Step
from lost_update_lab.under_test.outcome import comparable
from lost_update_lab.under_test.scenario import Mistake

ONLY_ONCE = (
    "only the first run sent {command!r}: something outside of the servers, which a process fills once, keeps the "
    "others from it (a thread's own variable, a closure, an object, a class). No schedule would try what two new "
    "processes do there. Keep it in a global of the module, as a plain value, or let the operations make it anew each "
    "time; or do that step in the setup"
)
_CHANGES = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|MERGE|REPLACE|CALL|WITH)\b", re.IGNORECASE)
#: first words of SQL that change no row, and may be the name of a command of Redis, too
_SQL = frozenset(
    """ABORT ALTER ANALYZE BEGIN CLOSE COMMIT CREATE DEALLOCATE DECLARE DISCARD DO DROP END EXECUTE EXPLAIN FETCH FLUSH
    GET KILL LISTEN LOCK MOVE NOTIFY PREPARE RELEASE RESET REVOKE ROLLBACK SAVEPOINT SELECT SET SHOW START TABLE
    TRUNCATE UNLISTEN USE VACUUM VALUES""".split()  # noqa: SIM905  (a list of 39 lines says no more)
)
_SETS = re.compile(r"SET (?!(?:NAMES|ROLE|AUTOCOMMIT|TIME|SESSION|LOCAL|GLOBAL)\b)\S+ (?!TO\b|=)\S+")
#: what only tells the server about scripts, or about the connection
_PREPARES = frozenset(
    {"SCRIPT", "FUNCTION", "EVALSHA", "EVAL", "CLIENT", "HELLO", "AUTH", "SELECT", "MULTI", "EXEC", "DISCARD"}
)


def look(first: Iterable[Step], second: Iterable[Step], reading: Iterable[bytes]) -> None:
    """`reading`: the commands of Redis that only read. Raises Mistake."""
    others = {name.decode() for name in reading} | _PREPARES | _SQL
    left = Counter(comparable(each.command) for each in second)
    for step in first:
        command = str(comparable(step.command))
        left[command] -= 1
        if left[command] < 0 and step.kind == "step" and _writes(command, others):
            raise Mistake(ONLY_ONCE.format(command=command[:200]))


def _writes(command: str, others: Iterable[str]) -> bool:
    name = command.split(" ", 1)[0]
    of_redis = (name.isalpha() and name.isupper() and name not in others) or bool(_SETS.match(command))
    return of_redis or bool(_CHANGES.match(command))
