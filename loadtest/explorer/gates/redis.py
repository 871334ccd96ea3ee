"""The gate of redis-py, at its connection: pipelines, scripts and re-sent commands all pass here.

Each command of a pipeline is a step of its own. Commands are sent one by one, each when its turn has come; the
client reads their replies as it always does.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import redis
from redis.connection import AbstractConnection

from loadtest.explorer.gates.here import Active, Here, anywhere, here
from loadtest.explorer.gates.patch import Patches
from loadtest.explorer.gates.redis_commands import shown, split, time_out
from loadtest.explorer.gates.redis_connections import (
    Gated,
    connect_again,
    connect_check_health,
    gate_of,
    known,
    server_of,
)
from loadtest.explorer.gates.redis_scripts import time_of_day
from loadtest.explorer.gates.redis_waits import until_readable
from loadtest.explorer.ops import Op
from loadtest.explorer.playing import Standing
from loadtest.explorer.servers.redis_wire import left, readable
from loadtest.explorer.tasks import Halt, Task

if TYPE_CHECKING:
    from loadtest.explorer.recording import Recording
    from loadtest.explorer.run import Run

_send: Any = AbstractConnection.send_packed_command
_read: Any = AbstractConnection.read_response
_can_read: Any = AbstractConnection.can_read

#: a command that cannot block is answered; the watchdog of the run (run.py) is there for a server that hangs
SURE_WITHIN = 60.0
_LOCAL = {b"MULTI", b"PING", b"ECHO"}
_TTL = (b"PTTL ", b"TTL ")


@dataclass(slots=True)
class RedisCommand:
    """A command as it was recorded. `number`: of the worker's connection."""

    server: str
    number: int
    words: list[bytes]
    raw: bytes
    checked_out: bool

    def same(self) -> Hashable:
        return self.server, self.number, self.raw, self.checked_out

    def play(self, run: Run, task: Task, recording: Recording) -> Standing:
        connection, place = recording.connection(task.worker, self.server, self.number), Here(run, task)
        args, keywords = recording.reading(task.worker, self.raw)
        gated = gate_of(place, connection)
        gated.checked_out = self.checked_out
        gated.outbox.append((self.words, self.raw))
        with suppress(redis.RedisError):
            yield from _deliver(place, connection, gated)
            op, gated.op = gated.op, None
            assert op is not None
            _receive(place, connection, gated, op, *args, **keywords)


def send_packed_command(connection: Any, command: Any, check_health: bool = True) -> None:
    place = here()
    if place is None:
        if Active.run is not None and server_of(Active.run, connection):
            Active.stranger("a command to Redis")
        connection.explorer_listens = getattr(connection, "explorer_listens", False) or _subscribes(command)
        _send(connection, command, check_health)
        return
    if place.run.ending:
        raise Halt
    gated = gate_of(place, connection)
    if check_health:
        connection.check_health()
    gated.outbox.extend(split(command))
    _live(place, connection, gated)


def _subscribes(command: Any) -> bool:
    """Of a handshake, which is no step."""
    return any(words[0].upper() == b"SUBSCRIBE" for words, _ in split(command)) if anywhere() else False


def _live(place: Here, connection: Any, gated: Gated) -> None:
    """A thread sends its next command."""
    run, task = place.run, place.task
    number = list(task.worker.sessions[gated.server.name]).index(connection)
    command = RedisCommand(gated.server.name, number, *gated.outbox[0], gated.checked_out)
    gated.recorded = run.arrives(task, command)
    run.live(task, _deliver(place, connection, gated))


def read_response(connection: Any, *args: Any, **keywords: Any) -> Any:
    place = here()
    gated = known(connection)
    if place is None or gated is None:
        return _read(connection, *args, **keywords)
    if gated.op is None and gated.outbox:
        _live(place, connection, gated)
    op, gated.op = gated.op, None
    if op is None:  # a message of a subscription
        _only_live(place)
        given = keywords.get("timeout")
        seconds = given if isinstance(given, int | float) else None
        place.run.live(place.task, until_readable(place, connection, gated, seconds))
        if seconds is not None and not readable(connection):
            place.task.history.add(b"no message")
            raise redis.TimeoutError("Timeout reading from socket")
        op = Op(gated.server.name, "message", b"message", local=True, reads=True)
    elif gated.recorded:
        if place.run.recorder:
            place.run.recorder.recording.read(place.task.worker, gated.recorded.raw, (args, keywords))
        gated.recorded = None
    return _receive(place, connection, gated, op, *args, **keywords)


def _only_live(place: Here) -> None:
    if place.run.recorder:
        place.run.recorder.opaque("a subscription")


def _receive(place: Here, connection: Any, gated: Gated, op: Op, *args: Any, **keywords: Any) -> Any:
    try:
        reply = _read(connection, *args, **keywords)
    except redis.ResponseError as error:
        place.run.cold |= isinstance(error, redis.exceptions.NoScriptError)
        _told(place, op, f"({error})", str(error).encode())
        place.run.heard(place.task, ("error", str(error)))
        raise
    except redis.RedisError as error:
        _broke(place, op, error)
        raise
    if isinstance(reply, int) and op.identity.startswith(_TTL):
        reply = left(op.text, reply, gated.server.leases(), place.run.now)
    if op.identity == b"TIME" and isinstance(reply, list):
        told = [str(each) for each in time_of_day(place.run.now + gated.server.ahead)]
        reply = [word.encode() for word in told] if isinstance(reply[0], bytes) else told
    exact = repr(reply).encode()
    _told(place, op, shown(reply), exact)
    place.run.heard(place.task, exact)
    if op.lose_reply:
        gated.outbox.clear()
        connection.disconnect()
        worker = place.task.worker.name
        place.run.record(worker, place.task.name, "lost-reply", "the reply is lost", "connection lost")
        place.task.history.add(b"lost")
        place.run.heard(place.task, "lost")
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
    _only_live(place)
    if not readable(connection) and timeout != 0:
        place.run.live(place.task, until_readable(place, connection, gated, timeout))
    found = readable(connection)
    place.task.history.add(b"message" if found else b"no message")
    return found


# -- one command ------------------------------------------------------------------------------------------------


def _deliver(place: Here, connection: Any, gated: Gated) -> Standing:
    words, raw = gated.outbox.popleft()
    op = _describe(gated, words)
    yield from place.run.standing(place.task, op)
    try:
        if gated.number < 0 and gated.checked_out:
            connect_again(connection, gated)
        gated.checked_out = False
        _send(connection, [gated.server.clocked(words, raw, place.run.now)], check_health=False)
    except redis.RedisError as error:
        _broke(place, op, error)
        raise
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
            yield from until_readable(place, connection, gated, time_out(name, words))
    except redis.RedisError as error:
        _broke(place, op, error)
        raise
    finally:
        if not op.reads:
            gated.server.touched()


def _describe(gated: Gated, words: list[bytes]) -> Op:
    name = words[0].upper()
    inside = gated.mode == b"MULTI" and name not in (b"EXEC", b"DISCARD")
    local = name in _LOCAL or inside
    reads = local or name in gated.server.reading
    text = " ".join([name.decode(), *(word.decode(errors="backslashreplace") for word in words[1:])])
    return Op(gated.server.name, text, b" ".join([name, *words[1:]]), local, reads)


def _broke(place: Here, op: Op, error: redis.RedisError) -> None:
    """The client learns that its connection is gone: whoever sends the same again is not where it was before."""
    _told(place, op, f"({error})", b"broken " + type(error).__name__.encode())
    place.run.heard(place.task, ("broken", type(error), str(error)))


def _told(place: Here, op: Op, reply: str, exact: bytes) -> None:
    place.task.history.add(op.identity, exact)
    place.run.told(place.task, op, reply)


def install(patches: Patches) -> None:
    patches.method(AbstractConnection, "send_packed_command", send_packed_command)
    patches.method(AbstractConnection, "read_response", read_response)
    patches.method(AbstractConnection, "can_read", can_read)
    patches.method(AbstractConnection, "connect_check_health", connect_check_health)
