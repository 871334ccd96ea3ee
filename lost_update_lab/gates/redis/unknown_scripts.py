"""A script that the server does not know yet. A client hears so (NOSCRIPT), loads it, and calls it again.

    A: EVALSHA 5f…   NOSCRIPT        B: EVALSHA 5f…   NOSCRIPT
    A: SCRIPT LOAD                   B: SCRIPT LOAD
    A: EVALSHA 5f…                   B: EVALSHA 5f…

A run in which that happens is done again, now that the server has the script: nothing else is different. What the
server has is not put back, so a client that goes on without the script would do so in the first run only, and in no
schedule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import redis

from lost_update_lab.model.errors import Broken
from lost_update_lab.model.workers import WorkerProcess
from lost_update_lab.servers.redis.scripts import number_of

GOES_ON = (
    "{who} hears that Redis does not know a script, and goes on without it, which no later schedule does"
)
LOAD_IT = "load the script in the setup (SCRIPT LOAD), or call it again once it is loaded, as register_script() does"
_LOADS, _ENDS = (b"SCRIPT", b"FUNCTION"), (b"EXEC", b"DISCARD")


def hears(worker: WorkerProcess, command: str, error: redis.ResponseError) -> bool:
    """Is this NOSCRIPT?"""
    if not isinstance(error, redis.exceptions.NoScriptError):
        return False
    worker.unknown_script = [*command.split(), ""][1].lower().encode()
    return True


def goes_on(worker: WorkerProcess, words: Sequence[bytes]) -> Broken | None:
    """Its next command. Does it come to the script again?"""
    name = words[0].upper()
    if not worker.unknown_script or name in (*_LOADS, *_ENDS):
        return None
    if name.startswith(b"EVAL") and worker.unknown_script in (words[1].lower(), number_of(words[1])):
        worker.unknown_script = b""
        return None
    return _without(worker)


def ends_without(workers: Iterable[WorkerProcess]) -> Broken | None:
    """The run is over. A worker that a fault has ended might have come to it."""
    left = [each for each in workers if each.unknown_script and not (each.crashed or each.struck)]
    return _without(left[0]) if left else None


def _without(worker: WorkerProcess) -> Broken:
    return Broken(GOES_ON.format(who=worker.name), LOAD_IT)
