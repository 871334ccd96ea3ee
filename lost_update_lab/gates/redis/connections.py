"""The connections of redis-py that pass the gates: their numbers on the server, and what is known of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lost_update_lab.adapters import redis_py
from lost_update_lab.memo.recording import Recording
from lost_update_lab.model.commands import Op
from lost_update_lab.model.workers import Task
from lost_update_lab.runs.one_owner import only_owner
from lost_update_lab.runs.place import beside, connecting
from lost_update_lab.schedule.world import World
from lost_update_lab.servers.redis.bypass import note
from lost_update_lab.servers.redis.server import RedisServer
from lost_update_lab.servers.redis.wire import address


@dataclass(slots=True)
class Gated:
    """What the gate knows of one connection."""

    server: RedisServer
    number: int  # CLIENT ID
    outbox: deque[tuple[list[bytes], bytes]] = field(default_factory=deque)
    #: its next command stands at its gate: no other thread is given this connection
    stands: bool = False
    op: Op | None = None
    #: what was sent last, or is about to be
    sent: bytes = b""
    #: inside MULTI, WATCH or a subscription: not to be used again if the run ends here
    mode: bytes = b""
    #: the commands by which it has subscribed, also in its handshake: as long as it lives, it may get messages
    subscribed: tuple[bytes, ...] = ()
    #: its name is known in this run (messages.named)
    named: bool = False
    #: messages and replies that came, and that its client has not read (messages.py)
    arrived: deque[bytes] = field(default_factory=deque)
    #: what its MULTI has queued
    batch: list[Op] = field(default_factory=list)
    #: what its command has sent to those that listen (servers/redis/memoised.py)
    news: Any = ()
    #: the last command that was sent, as it was recorded
    recorded: Any = None
    #: fresh from the pool: nothing was sent yet
    checked_out: bool = False
    #: its thread has used it again without giving it back: no other thread will get it
    kept: bool = False
    #: its owner; what its MULTI has queued (redis/memoised.py); what the answer to its command will depend on
    who: tuple[int, int, int] = (0, 0, 0)
    queued: bytes | None = b""
    asked: Any = None
    #: what its thread is told, where no server is asked (fed.py)
    heard: Any = None
    #: which of the server's databases it uses (servers/redis/numbered.py)
    database: int = 0


def connect_check_health(connection: Any, *args: Any, **keywords: Any) -> None:
    """The handshake touches nothing that workers share: no step."""
    if redis_py.socket(
        connection
    ):  # a pool asks each time; whether the connection is still good shows when something is sent
        return
    with connecting(), beside():
        connection.explorer_listens = ()
        redis_py.connect_check_health(connection, *args, **keywords)
        note(connection)


def connect_again(connection: Any, gate: Gated) -> None:
    """The server was replaced since the pool gave this connection out. A moment later the pool would have noticed."""
    with beside():
        connection.disconnect()
        connection.connect()
    gate.number, connection.explorer_socket = connection.explorer_number, redis_py.socket(connection)
    gate.mode, gate.queued = b"", b""


def cut(connection: Any, gated: Gated) -> None:
    """The client loses the connection. The server forgets what that watched."""
    gated.outbox.clear()
    gated.server.watches_of.forget(gated.number)
    connection.disconnect()


def changes_mode(gated: Gated, op: Op, words: Sequence[bytes]) -> None:
    """A command that begins, or ends, a MULTI, a WATCH or a subscription; or is queued in a MULTI."""
    gated.server.watches_of.sent(gated.who, gated.number, words, gated.mode == b"MULTI")
    becomes(gated, op, words)


def becomes(gated: Gated, op: Op, words: Sequence[bytes]) -> None:
    """The same for the client alone."""
    name, in_multi = words[0].upper(), gated.mode == b"MULTI"
    if name == b"MULTI":
        gated.batch = []
    elif in_multi:
        gated.batch += [op] if op.local else []
    if name.endswith(b"SUBSCRIBE"):
        gated.mode = b"SUBSCRIBE"
    elif name == b"MULTI" or (name == b"WATCH" and not in_multi):
        gated.mode = name
    elif name in (b"EXEC", b"DISCARD") or (name == b"UNWATCH" and not in_multi):
        gated.mode = b""


def known(connection: Any) -> Gated | None:
    return getattr(connection, "explorer", None) if redis_py.socket(connection) else None


def gate_of(world: World, task: Task, connection: Any) -> Gated:
    """The connection's gate. A new connection shakes hands first, which is not a step."""
    found = known(connection)
    if found is None or connection.explorer_socket is not redis_py.socket(connection):
        with beside():
            if not redis_py.socket(connection):
                connection.connect()
            if not hasattr(connection, "explorer_number"):
                note(connection)
        found = Gated(_server(world, connection), connection.explorer_number, checked_out=True)
        found.subscribed = getattr(connection, "explorer_listens", ())
        found.database = int(getattr(connection, "db", 0) or 0)
        connection.explorer, connection.explorer_socket = found, redis_py.socket(connection)
    if world.fed:
        fed_run: Any = world
        fed_run.before.uses(connection)
        own: Gated = connection.explorer
        return own
    only_owner(world, task, found.server.name, connection)
    task.worker.sessions.setdefault(found.server.name, {})[connection] = task
    return found


def name_of(task: Task, connection: Any, gated: Gated) -> tuple[int, int]:
    """The name of the connection, whichever one a pool gave out: its thread, and its place among the connections that
    the thread is using."""
    used = task.uses.setdefault(gated.server.name, [])
    if connection in used and not gated.checked_out:
        return task.number, used.index(connection)
    used[:] = [None if other is connection or not _in_hand(other) else other for other in used]
    place = used.index(None) if None in used else len(used)
    used[place : place + 1] = [connection]
    return task.number, place


def _in_hand(connection: Any) -> bool:
    gate = known(connection) if connection else None
    return gate is not None and (gate.kept or in_use(gate) or bool(gate.subscribed))


def in_use(gate: Gated) -> bool:
    """Is its thread in the middle of something?"""
    return bool(gate.outbox or gate.op or gate.mode)


def free_one(task: Task, server: str, name: tuple[int, int], checked_out: bool, recording: Recording) -> Any:
    """The connection with this name, where a recording asks for it. Raises Unknown."""
    used, place = task.uses.setdefault(server, []), name[1]
    if place < len(used) and used[place] and not checked_out:
        return used[place]
    taken = [each for other in task.worker.tasks for each in other.uses.get(server, ())]

    def free(connection: Any) -> bool:
        gate = known(connection)
        busy = gate and (in_use(gate) or gate.kept or gate.stands)
        return not busy if checked_out else connection not in taken

    found = recording.connection(task.worker, server, free)
    used += [None] * (place + 1 - len(used))
    used[place] = found
    return found


def server_of(world: World, connection: Any) -> RedisServer | None:
    """The server of this run to which the connection leads."""
    target = address(connection)
    for server in world.at_gates.values():
        if isinstance(server, RedisServer) and server.address == target:
            return server
    return None


def _server(world: World, connection: Any) -> RedisServer:
    if found := server_of(world, connection):
        return found
    raise LookupError(f"a worker talks to a Redis at {address(connection)}, which the explorer was not given")


def reset(connection: Any) -> None:
    """After a run: a connection that was left in the middle of something is not used again."""
    gate: Gated | None = getattr(connection, "explorer", None)
    if gate is None:
        return
    gate.stands = False
    if in_use(gate) or gate.subscribed or gate.number < 0 or not redis_py.socket(connection):
        gate.outbox.clear()
        connection.explorer = None
        connection.disconnect()
