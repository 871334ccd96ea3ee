"""The gate of redis.asyncio: each of its connections sends through a synchronous one, which has a gate (gate.py).

A worker's coroutine runs in the worker's own thread, so nothing else waits for its loop (gates/coroutines.py).
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import redis
from redis.asyncio.connection import AbstractConnection
from redis.backoff import NoBackoff
from redis.retry import Retry

from lost_update_lab.gates.at_a_time import AtATime
from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs.place import anywhere

#: methods that the synchronous connection does, under the same name
METHODS = ("connect", "send_packed_command", "read_response", "can_read", "disconnect", "check_health")


def install(patches: Patches) -> None:
    for name in METHODS:
        patches.method(AbstractConnection, name, _by_its_twin(name, getattr(AbstractConnection, name)))


def _by_its_twin(name: str, plain: Any) -> Any:
    @wraps(plain)
    async def done(connection: Any, *args: Any, **keywords: Any) -> Any:
        place = anywhere()
        if place is None:
            return await plain(connection, *args, **keywords)
        if name == "disconnect":
            args, keywords = (), {}
        if name == "send_packed_command":
            AtATime.look()
        twins = vars(connection).setdefault("explorer_twins", {})
        index = place.task.worker.index
        if index not in twins:
            twins[index] = _twin(connection)
        return getattr(twins[index], name)(*args, **keywords)

    return done


def _twin(connection: Any) -> Any:
    """A synchronous connection to the same server, for this worker. Retries are up to the caller."""
    given = {name: getattr(connection, name) for name in ("db", "username", "password", "protocol")}
    given |= {"decode_responses": connection.encoder.decode_responses, "retry": Retry(NoBackoff(), 0)}
    plain: Any = redis.UnixDomainSocketConnection
    if hasattr(connection, "path"):
        return plain(path=connection.path, **given)
    plain = redis.SSLConnection if "SSL" in type(connection).__name__ else redis.Connection
    return plain(host=connection.host, port=connection.port, **given)
