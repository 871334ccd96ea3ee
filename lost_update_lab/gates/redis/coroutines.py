"""The gate of redis.asyncio: each of its connections sends through a synchronous one, which has a gate (gate.py).

In an event loop with gates (gates/event_loop.py) a command is sent when its reply is read, which is the next thing that
redis.asyncio does: then both are one step, as they are in a thread.
"""

from __future__ import annotations

import asyncio
from functools import wraps
from math import inf
from typing import Any

import redis
from redis.asyncio.connection import AbstractConnection
from redis.backoff import NoBackoff
from redis.retry import Retry

from lost_update_lab.gates.at_a_time import AtATime
from lost_update_lab.gates.invariant_call import is_asking
from lost_update_lab.gates.patch import Patches
from lost_update_lab.gates.redis import gate
from lost_update_lab.gates.redis.connections import known
from lost_update_lab.model.workers import halt
from lost_update_lab.runs.place import Here, anywhere, here
from lost_update_lab.servers.redis.commands import UNANSWERED

SUBSCRIBE = b"SUBSCRIBE"
#: in place of the number of a worker
OF_AN_INVARIANT = -1
#: methods that the synchronous connection does, under the same name
METHODS = ("connect", "send_packed_command", "read_response", "can_read", "disconnect", "check_health")


def install(patches: Patches) -> None:
    for name in METHODS:
        patches.method(AbstractConnection, name, _by_its_twin(name, getattr(AbstractConnection, name)))


def _by_its_twin(name: str, plain: Any) -> Any:
    @wraps(plain)
    async def done(connection: Any, *args: Any, **keywords: Any) -> Any:
        place = anywhere()
        if place is None and not is_asking():
            return await plain(connection, *args, **keywords)
        if name == "disconnect":
            args, keywords = (), {}
        twins = vars(connection).setdefault("explorer_twins", {})
        index = place.task.worker.index if place else OF_AN_INVARIANT
        if index not in twins:
            twins[index] = _twin(connection)
        gated = GATED.get(name) if here() and place and place.loop else None
        if gated and place:
            return await gated(place, connection, twins[index], *args, **keywords)
        if place and name == "send_packed_command":
            AtATime.look()
        return getattr(twins[index], name)(*args, **keywords)

    return done


async def _send(place: Here, connection: Any, twin: Any, command: Any, check_health: bool = True) -> None:
    assert place.loop
    task, gated = place.task, gate.about_to_send(place, twin, command, check_health)
    if any(raw.startswith(UNANSWERED) or words[0].upper().endswith(SUBSCRIBE) for words, raw in gated.outbox):
        # its reply is a message, and perhaps never read
        await place.loop.live(task, gate.sending(place.run, task, twin, gated))


async def _read(place: Here, connection: Any, twin: Any, *args: Any, **keywords: Any) -> Any:
    assert place.loop
    if place.run.ending:
        halt(place.task)
    task, gated = place.task, known(twin)
    if gated is None:
        return twin.read_response(*args, **keywords)
    timeout = None if keywords.get("timeout") == inf else keywords.get("timeout")  # inf: for ever
    keywords = {**keywords, "timeout": timeout} if "timeout" in keywords else keywords
    try:
        return await place.loop.live(task, gate.reading(place.run, task, twin, gated, *args, **keywords))
    except redis.TimeoutError:
        if timeout is None:
            raise
        return None  # its caller has asked for that time
    except asyncio.CancelledError:
        if gate.leaves(place.run, task, twin, gated):
            del vars(connection)["explorer_twins"][task.worker.index]
        raise


#: … and those that stand at a gate
GATED = {"send_packed_command": _send, "read_response": _read}


def _twin(connection: Any) -> Any:
    """A synchronous connection to the same server, for this worker. Retries are up to the caller."""
    given = {name: getattr(connection, name) for name in ("db", "username", "password", "protocol")}
    given |= {"decode_responses": connection.encoder.decode_responses, "retry": Retry(NoBackoff(), 0)}
    plain: Any = redis.UnixDomainSocketConnection
    if hasattr(connection, "path"):
        return plain(path=connection.path, **given)
    plain = redis.SSLConnection if "SSL" in type(connection).__name__ else redis.Connection
    return plain(host=connection.host, port=connection.port, **given)
