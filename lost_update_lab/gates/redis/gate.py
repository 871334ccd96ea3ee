"""The gate of redis-py, at its connection: pipelines, scripts and re-sent commands all pass here.

Each command of a pipeline is a step of its own. Commands are sent one by one, each when its turn has come. The client
reads their replies as it always does.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import redis
from redis import utils
from redis.connection import AbstractConnection

from lost_update_lab.adapters import redis_py
from lost_update_lab.gates.patch import Patches
from lost_update_lab.gates.redis import questions
from lost_update_lab.gates.redis.connections import (
    Gated,
    connect_check_health,
    gate_of,
    known,
    server_of,
)
from lost_update_lab.gates.redis.fed import fed, reply
from lost_update_lab.gates.redis.messages import (
    disconnect,
    has_looked,
    hears_none,
    listener,
    look_at,
    message_of,
    named,
    stands_before,
)
from lost_update_lab.gates.redis.step import RedisCommand, deliver, receive, takes_effect, unheard
from lost_update_lab.gates.redis.waits import until_readable
from lost_update_lab.model.commands import Op
from lost_update_lab.model.workers import Standing, Task, halt
from lost_update_lab.runs.place import Active, Here, anywhere, here
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import pending
from lost_update_lab.servers.redis.commands import split, subscribes
from lost_update_lab.servers.redis.wire import readable


def send_packed_command(connection: Any, command: Any, check_health: bool = True) -> None:
    place = here()
    if place is None:
        if Active.run is not None and server_of(Active.run, connection):
            Active.bypassed("a command to Redis")
        if anywhere():  # in its handshake, which is not a step
            before = getattr(connection, "explorer_listens", ())
            connection.explorer_listens = (
                *before,
                *(raw for words, raw in split(command) if subscribes(words)),
            )
        questions.note(connection, command)
        redis_py.send(connection, command, check_health)
        return
    gated = about_to_send(place, connection, command, check_health)
    place.run.live(place.task, sending(place.run, place.task, connection, gated))


def about_to_send(place: Here, connection: Any, command: Any, check_health: bool = True) -> Gated:
    if place.run.ending:
        if [words for words, _ in split(command)] == [[b"UNWATCH"]]:
            # a pipeline that is left: redis-py then closes the connection, and gives it back to its pool
            raise redis.ConnectionError("Connection closed by server.")
        halt(place.task)
    gated = gate_of(place.run, place.task, connection)
    if check_health:
        connection.check_health()
    gated.kept |= not gated.checked_out and not gated.mode
    gated.outbox.extend(split(command))
    return gated


def sending(run: Run, task: Task, connection: Any, gated: Gated) -> Standing:
    """The next command."""
    handshake = named(run, task, connection, gated)
    command = RedisCommand(gated.server.name, gated.who[1:], *gated.outbox[0], gated.checked_out, handshake)
    gated.recorded = run.arrives(task, command)
    if run.fed:
        yield from fed(run, task, gated, command)
        return
    yield from deliver(run, task, connection, gated)


def read_response(connection: Any, *args: Any, **keywords: Any) -> Any:
    place = here()
    gated = listener(place.run, place.task, connection) if place else None
    if place is None or gated is None:
        return questions.read(connection, *args, **keywords)
    return place.run.live(place.task, reading(place.run, place.task, connection, gated, *args, **keywords))


def reading(run: Run, task: Task, connection: Any, gated: Gated, *args: Any, **keywords: Any) -> Standing:
    """The next reply, or message."""
    if gated.op is None and gated.outbox:
        yield from sending(run, task, connection, gated)
    if run.fed:
        return reply(run, task, connection, gated)
    op, gated.op = gated.op, None
    if gated.recorded:
        if run.recorder and not gated.subscribed:
            run.recorder.recording.read(task.worker, gated.recorded.raw, (args, keywords))
        gated.recorded = None
        assert op
    else:
        op = yield from _next_message(run, task, connection, gated, op, keywords.get("timeout"))
    return receive(run, task, connection, gated, op, *args, **keywords)


def leaves(run: Run, task: Task, connection: Any, gated: Gated) -> bool:
    """A coroutine is cancelled while its command is under way: redis-py cuts the connection, and what was sent takes
    effect all the same. Returns whether there is something that may."""
    if gated.mode == b"SUBSCRIBE" or not takes_effect(gated):
        return False
    left = run.new_unheard(task)
    task.worker.sessions[gated.server.name][connection] = left
    left.history.add(*(raw for _, raw in gated.outbox))
    left.steps = unheard(run, left, connection, gated)
    next(left.steps)
    return True


def _next_message(
    run: Run, task: Task, connection: Any, gated: Gated, op: Op | None, timeout: Any
) -> Generator[None, None, Op]:
    """Ends when there is one. `op`: the command to which it is the reply. Raises redis.TimeoutError."""
    seconds = timeout if isinstance(timeout, int | float) else None
    stands_before(run, task, connection, gated, seconds)
    if op:
        return op
    yield from until_readable(run, task, connection, gated, seconds)
    if seconds is not None and not readable(connection):
        hears_none(run, task)
        raise redis.TimeoutError("Timeout reading from socket")
    return message_of(gated.server.name)


def can_read(connection: Any, timeout: float = 0) -> bool:
    place = here()
    gated = listener(place.run, place.task, connection) if place else known(connection)
    if place is None or gated is None or gated.mode != b"SUBSCRIBE":
        if gated:
            gated.checked_out, gated.kept = True, False  # so a pool checks whether it is still good
        return bool(redis_py.can_read(connection, timeout))
    if not readable(connection):
        gated.server.barrier()
    stands_before(place.run, place.task, connection, gated, timeout, looks=True)
    if not readable(connection):
        look = pending.standing(place.run, place.task, look_at(gated.server.name))
        waits = until_readable(place.run, place.task, connection, gated, timeout)
        place.run.live(place.task, waits if timeout else look)
    has_looked(place.run, place.task, found := readable(connection))
    return found


def install(patches: Patches) -> None:
    redis_py.LIBRARY.check()
    patches.method(utils, "get_lib_version", redis_py.own_version)
    patches.method(AbstractConnection, "send_packed_command", send_packed_command)
    patches.method(AbstractConnection, "read_response", read_response)
    patches.method(AbstractConnection, "can_read", can_read)
    patches.method(AbstractConnection, "disconnect", disconnect)
    patches.method(AbstractConnection, "connect_check_health", connect_check_health)
