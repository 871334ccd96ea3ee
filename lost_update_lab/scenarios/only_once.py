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
from collections.abc import Mapping, Sequence
from typing import Any

from lost_update_lab.scenarios.serial import Serial
from lost_update_lab.servers.compound import names_one, statement_of
from lost_update_lab.servers.mariadb.server import MariaDBServer
from lost_update_lab.servers.postgres.server import PostgresServer
from lost_update_lab.servers.redis.server import RedisServer
from lost_update_lab.telling.parameters import listed
from lost_update_lab.under_test.fresh import comparable
from lost_update_lab.under_test.scenario import Mistake

ONLY_ONCE = (
    "only the first run sent {command!r}: something outside of the servers, which a process fills once, keeps the "
    "others from it ({what}). No schedule would try what two new processes do there. Keep it in a global of the "
    "module, as a plain value, or let the operations make it anew each time; or do that step in the setup"
)
UNKNOWN = "a thread's own variable, a closure, an object, a class"
_CHANGES = re.compile(
    r"(?:INSERT|UPDATE|DELETE|MERGE|REPLACE|CALL|TRUNCATE|DO|EXECUTE)\b|WITH\b.*\b(?:INSERT|UPDATE|DELETE|MERGE)\b",
    re.IGNORECASE | re.DOTALL,
)
#: rows that `manage.py migrate` makes, where it was run; a process asks for each once
_OF_DJANGO = "django_content_type"
#: what a client hears of a script that Redis does not know
NO_SCRIPT = "No matching script"
#: … and what may write by a script, or by what was queued before
_OF_REDIS = frozenset({"EVAL", "EVALSHA", "FCALL", "EXEC"})


def look(first: Serial, second: Serial, servers: Mapping[str, Any], changed: Sequence[str] = ()) -> None:
    """Two runs of the same order. `changed`: what the first one has changed, as far as that is known. Raises
    Mistake."""
    left = Counter((op.server, comparable(op.text)) for op, _ in second.commands)
    unknown = None
    for op, reply in first.commands:
        command = comparable(op.text)
        if NO_SCRIPT in reply:  # it has done nothing, and is sent again, or the script itself is
            unknown = command
            continue
        if unknown and op.text.startswith("EVAL "):
            command, unknown = unknown, None
        left[op.server, command] -= 1
        if left[op.server, command] < 0 and not op.reads and _writes(servers.get(op.server), op.text):
            what = ", ".join(changed[:3]) or UNKNOWN
            raise Mistake(ONLY_ONCE.format(command=listed(str(command))[:200], what=what))


def _writes(server: Any, text: str) -> bool:
    """A command that does not only read may still change nothing that is shared: SET TRANSACTION, CLIENT, INFO."""
    if isinstance(server, RedisServer):
        name = text.split(" ", 1)[0]
        return name in _OF_REDIS or name.encode() in server.writing
    if not isinstance(server, PostgresServer | MariaDBServer):
        return True
    statement = statement_of(text)
    if _OF_DJANGO in statement:
        return False
    functions = server.unseen.functions if isinstance(server, PostgresServer) else ()
    return bool(_CHANGES.match(statement)) or names_one(statement, functions)
