"""The gate of redis-py, at its connection: pipelines, scripts and re-sent commands all pass here.

Each command of a pipeline is a step of its own. Commands are sent one by one, each when its turn has come; the
client reads their replies as it always does.
"""

from __future__ import annotations

from typing import Any

import redis
from redis.connection import AbstractConnection

from loadtest.explorer import faults
from loadtest.explorer.gates.here import Active, Here, here
from loadtest.explorer.gates.patch import Patches
from loadtest.explorer.gates.redis_commands import shown, split, time_out
from loadtest.explorer.gates.redis_connections import (
    Gated,
    connect_again,
    connect_check_health,
    gate_of,
    known,
)
from loadtest.explorer.ops import Op
from loadtest.explorer.servers.redis_wire import readable, rounded
from loadtest.explorer.tasks import Halt

_send: Any = AbstractConnection.send_packed_command
_read: Any = AbstractConnection.read_response
_can_read: Any = AbstractConnection.can_read

#: how long a reply may take before the server is asked whether the command is blocked
NEWS_WITHIN = 0.001
#: a command that cannot block is answered; the watchdog of the run (run.py) is there for a server that hangs
SURE_WITHIN = 60.0
#: how long real replicas, or a disk, may take to confirm
CONFIRMED_WITHIN = 1.0
_LOCAL = {b"MULTI", b"PING", b"ECHO"}
_TTL = {b"PTTL", b"TTL"}


def send_packed_command(connection: Any, command: Any, check_health: bool = True) -> None:
    place = here()
    if place is None:
        if Active.run is not None:
            Active.stranger("a command to Redis")
        _send(connection, command, check_health)
        return
    if place.run.ending:
        raise Halt
    gated = gate_of(place, connection)
    if check_health:
        connection.check_health()
    gated.outbox.extend(split(command))
    _deliver(place, connection, gated)


def read_response(connection: Any, *args: Any, **keywords: Any) -> Any:
    place = here()
    gated = known(connection)
    if place is None or gated is None:
        return _read(connection, *args, **keywords)
    if gated.op is None and gated.outbox:
        _deliver(place, connection, gated)
    op, gated.op = gated.op, None
    if op is None:  # a message of a subscription
        given = keywords.get("timeout")
        seconds = given if isinstance(given, int | float) else None
        _await(place, connection, gated, seconds)
        if seconds is not None and not readable(connection):
            place.task.history.add(b"no message")
            raise redis.TimeoutError("Timeout reading from socket")
        op = Op(gated.server.name, "message", b"message", local=True, reads=True)
    try:
        reply = _read(connection, *args, **keywords)
    except redis.ResponseError as error:
        place.run.cold |= isinstance(error, redis.exceptions.NoScriptError)
        _told(place, op, f"({error})", str(error).encode())
        raise
    first = op.identity.split(b" ", 1)[0]
    exact = rounded(reply) if first in _TTL and isinstance(reply, int) else reply
    _told(place, op, shown(reply), repr(exact).encode())
    if op.lose_reply:
        gated.outbox.clear()
        connection.disconnect()
        worker = place.task.worker.name
        place.run.record(worker, place.task.name, "lost-reply", "the reply is lost", "connection lost")
        place.task.history.add(b"lost")
        raise redis.ConnectionError("Connection closed by server.")
    return reply


def can_read(connection: Any, timeout: float = 0) -> bool:
    place = here()
    gated = known(connection)
    if place is None or gated is None or gated.mode != b"SUBSCRIBE":
        if gated:
            gated.checked_out = True  # so a pool looks whether the connection is still good
        return bool(_can_read(connection, timeout))
    if not readable(connection):
        gated.server.barrier()
    if not readable(connection) and timeout != 0:
        _await(place, connection, gated, timeout)
    found = readable(connection)
    place.task.history.add(b"message" if found else b"no message")
    return found


# -- one command ------------------------------------------------------------------------------------------------


def _deliver(place: Here, connection: Any, gated: Gated) -> None:
    words, raw = gated.outbox.popleft()
    op = _describe(gated, words)
    place.run.gate(place.task, op)
    if gated.number < 0 and gated.checked_out:
        connect_again(connection, gated)
    gated.checked_out = False
    _send(connection, [gated.server.clocked(words, raw, place.run.now)], check_health=False)
    gated.op = op
    name = words[0].upper()
    if name in (b"MULTI", b"WATCH") or name.endswith(b"SUBSCRIBE"):
        gated.mode = b"SUBSCRIBE" if name.endswith(b"SUBSCRIBE") else name
    elif name in (b"EXEC", b"DISCARD", b"UNWATCH"):
        gated.mode = b""
    try:
        if gated.op.local or name not in gated.server.blocking:
            connection._parser.can_read(SURE_WITHIN)
        else:
            _await(place, connection, gated, time_out(name, words))
    finally:
        if not op.reads:
            gated.server.touched()


def _await(place: Here, connection: Any, gated: Gated, seconds: float | None) -> None:
    """Return when a reply is there. The server answers in order: no reply after a barrier means: blocked."""
    run, task = place.run, place.task
    op = gated.op
    confirming = op is not None and op.text.split(" ", 1)[0] in ("WAIT", "WAITAOF")
    if confirming and gated.server.lags:
        faults.charge(run, gated.server.name)
    if confirming and op:
        gated.server.confirming.add(op.text.split(" ", 1)[0])
    if connection._parser.can_read(CONFIRMED_WITHIN if confirming and not gated.server.lags else NEWS_WITHIN):
        return
    gated.server.barrier()
    over: list[bool] = []
    subscription = gated.op is None

    def expire() -> None:
        if subscription:
            over.append(True)
            run.wake(task, run.now)
        else:
            gated.server.unblock(gated.number)

    polls = seconds is not None
    while not readable(connection) and not over:
        if task.op is None or task.op.server != gated.server.name:
            task.op = Op(gated.server.name, "message", b"message", local=True, reads=True)
        task.session = connection
        task.expire = expire
        run.blocked(task, seconds, polls)
        polls = False


def _describe(gated: Gated, words: list[bytes]) -> Op:
    name = words[0].upper()
    inside = gated.mode == b"MULTI" and name not in (b"EXEC", b"DISCARD")
    local = name in _LOCAL or inside
    reads = local or name in gated.server.reading
    text = " ".join([name.decode(), *(word.decode(errors="backslashreplace") for word in words[1:])])
    return Op(gated.server.name, text, b" ".join([name, *words[1:]]), local, reads)


def _told(place: Here, op: Op, reply: str, exact: bytes) -> None:
    place.task.history.add(op.identity, exact)
    place.run.told(place.task, op, reply)


def install(patches: Patches) -> None:
    patches.method(AbstractConnection, "send_packed_command", send_packed_command)
    patches.method(AbstractConnection, "read_response", read_response)
    patches.method(AbstractConnection, "can_read", can_read)
    patches.method(AbstractConnection, "connect_check_health", connect_check_health)
