"""Messages of subscriptions: which command sends which message to whom, and how a thread reads the next one.

    B: SUBSCRIBE released            its reply comes as a message
    A: PUBLISH released free         while it is executed, a message comes to B: the answer says so too
    B: reads a message               the next one that has come, or it waits: an input of its thread like any reply

What comes over a connection that listens is looked at before its client reads it, after each command of any worker.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from lost_update_lab.adapters import redis_py
from lost_update_lab.gates.redis.connections import Gated, gate_of, known, name_of
from lost_update_lab.memo.recording import Recording
from lost_update_lab.model.commands import Op
from lost_update_lab.model.effects import CLOSED
from lost_update_lab.model.errors import BY_PLAIN_TEXT, Broken, Unknown
from lost_update_lab.model.memoised_server import Who
from lost_update_lab.model.workers import Standing, Task
from lost_update_lab.runs.place import here
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import pending
from lost_update_lab.schedule.world import World
from lost_update_lab.servers.redis.memoised import Listening, MemoisedRedis, Messages, Read
from lost_update_lab.servers.redis.wire import replies

NO_MESSAGE = "no message"
UNSEEN = "messages come to a subscription that the explorer cannot look into: encrypted, or in parts"


@dataclass(slots=True)
class Message:
    """A thread reads the next message, or (`looks`) asks whether there is one, for so many `seconds` at most (None: it
    waits for ever). `name`: of the connection. `handshake`: the subscriptions of one that was just made."""

    server: str
    name: tuple[int, int]
    seconds: float | None
    looks: bool
    handshake: tuple[bytes, ...]

    def same(self) -> Hashable:
        seconds = None if self.seconds is None else round(self.seconds, 6)
        return self.server, self.name, seconds, self.looks, self.handshake

    def play(self, world: World, task: Task, recording: Recording) -> Standing:
        raise Unknown(task.worker.index)  # it comes over the connection of real code
        yield

    def stand(self, world: World, task: Task) -> None:
        """It stands still where there is no message, and before a look that does not wait for one."""
        server = world.servers[self.server]
        assert isinstance(server, MemoisedRedis)
        who = task.worker.index, *self.name
        if self.handshake:
            task.worker.sessions.setdefault(self.server, {})[who] = task
            server.has_connected(who, self.handshake)
        if self.looks and self.seconds == 0 and not server.unread(who):
            pending.stand(world, task, look_at(self.server))

    def turn(self, world: World, task: Task, recording: Recording) -> None:
        who, server = (task.worker.index, *self.name), world.servers[self.server]
        assert isinstance(server, MemoisedRedis)
        has_come, over, task.late = server.unread(who), task.late, ""
        if not (has_come or over or (self.looks and self.seconds == 0)):
            task.op = waiting_for(task, self.server)
            task.sent(who, _is_over)
            pending.block(world, task, self.seconds, in_vain=self.seconds is not None)
        elif self.looks:
            has_looked(world, task, has_come)
        elif has_come:
            read_in_memory(world, task, server, who)
        else:
            hears_none(world, task)


def waiting_for(task: Task, server: str) -> Op:
    """What a thread stands before that waits for a message."""
    return task.op if task.op and task.op.server == server else message_of(server)


def message_of(server: str) -> Op:
    return Op(server, "message", b"message", local=True, reads=True)


def look_at(server: str) -> Op:
    """A look at a subscription that does not wait for a message: one may come before it."""
    return Op(server, "is there a message?", b"look", reads=True, silent=True)


def _is_over(world: World, task: Task) -> None:
    task.late = NO_MESSAGE
    world.wake(task, world.now)


def has_looked(world: World, task: Task, found: bool) -> None:
    what = b"message" if found else NO_MESSAGE.encode()
    task.history.add(what)
    pending.hear(world, task, what)


def hears_none(world: World, task: Task) -> None:
    task.history.add(NO_MESSAGE.encode())
    pending.hear(world, task, NO_MESSAGE)


def read_in_memory(world: World, task: Task, server: MemoisedRedis, who: Who) -> None:
    """Read what has come first. Raises Unanswered."""
    op, answer = server.reads(who)
    op = op or message_of(server.name)
    task.history.add(op.identity, answer.exact)
    pending.tell(world, task, op, answer.shown)
    pending.hear(world, task, ("error", answer.exact.decode()) if answer.error else answer.exact)
    if task.loses_reply and not answer.error:
        server.forget(who)
        lose(world, task)


def lose(world: World, task: Task) -> None:
    world.record(task.worker.name, task.name, "lost-reply", "the reply is lost", "connection lost")
    task.history.add(b"lost")
    pending.hear(world, task, "lost")


# -- at the gate ------------------------------------------------------------------------------------------------------


def listener(run: Run, task: Task, connection: Any) -> Gated | None:
    """What is known of a connection. A client that listens may just have made it again, and subscribed again."""
    gated = known(connection)
    if (
        gated is None
        or connection.explorer_socket is redis_py.socket(connection)
        or not connection.explorer_listens
    ):
        return gated
    gated = gate_of(run, task, connection)
    gated.mode = b"SUBSCRIBE"
    return gated


def named(run: Run, task: Task, connection: Any, gated: Gated) -> tuple[bytes, ...]:
    """Name the connection. Returns by which commands it has subscribed in its handshake, if that is news."""
    before, gated.who = gated.who, (task.worker.index, *name_of(task, connection, gated))
    again, gated.named = gated.named, True
    if again and gated.subscribed and before != gated.who:
        opaque(run, "a connection that listens and goes from hand to hand")
    if gated.server.watches_of.name(gated.number) not in (None, gated.who):
        opaque(run, "a connection that watches keys and goes from hand to hand")
    if gated.subscribed:
        begins_to_listen(run, gated)
    return () if again else gated.subscribed


def begins_to_listen(world: World, gated: Gated) -> None:
    """Over a connection that listens, only its own client can read: where one worker runs its real code, all do."""
    recorder: Any = world.recorder
    if recorder and not recorder.recording.alone:
        recorder.recording.alone = True
        if gated.server.tells_of_keys():
            recorder.opaque("a server that tells of keys")


def stands_before(
    run: Run, task: Task, connection: Any, gated: Gated, seconds: float | None, *, looks: bool = False
) -> None:
    """The thread is about to read the next message."""
    if run.fed:
        run.refuse(task)
    if not gated.subscribed:
        opaque(run, "it reads what it did not ask for")
    handshake = named(run, task, connection, gated)
    gated.checked_out = False
    run.arrives(task, Message(gated.server.name, gated.who[1:], seconds, looks, handshake))


def disconnect(connection: Any, *args: Any, **keywords: Any) -> None:
    """The server forgets the subscriptions of this connection."""
    place, gated = here(), known(connection)
    if gated and gated.subscribed:
        if place and place.run.recorder:
            place.run.recorder.effect(place.task, CLOSED, gated.server.name, gated.who)
        gated.subscribed, gated.mode = (), b"" if gated.mode == b"SUBSCRIBE" else gated.mode
        gated.server.unread.pop(gated.who, None)
    if gated and gated.server.watches_of.name(gated.number):
        gated.server.watches_of.forget(gated.number)
        if place and not place.run.ending:
            opaque(place.run, "a connection that its client closes while it watches keys")
    redis_py.disconnect(connection, *args, **keywords)


# -- what a command sends to whom -------------------------------------------------------------------------------------


def _listeners(world: World, server: str) -> dict[Who, tuple[Any, Gated]]:
    used = [connection for worker in world.workers for connection in worker.sessions.get(server, ())]
    gates = [(connection, gated) for connection in used if (gated := known(connection))]
    return {
        gated.who: (connection, gated) for connection, gated in gates if gated.subscribed and gated.number > 0
    }


def listening(world: World, server: str) -> Listening:
    """Who listens there now, and to what."""
    return tuple(sorted((who, gated.subscribed) for who, (_, gated) in _listeners(world, server).items()))


def unread(world: World, server: str) -> dict[Who, bytes | None]:
    """Before a command: what has come to those that listen, and was not read."""
    return {who: redis_py.arrived(connection) for who, (connection, _) in _listeners(world, server).items()}


def news(world: World, own: Gated, before: dict[Who, bytes | None]) -> Messages:
    """After a command: what it has sent to those that listen. `own`: the connection of the command."""
    found: list[tuple[Who, tuple[bytes, ...]]] = []
    listeners = _listeners(world, own.server.name)
    for _ in range(
        2 if own.subscribed else bool(listeners)
    ):  # what is there may be older than its reply (waits.py)
        own.server.barrier()
    for who, (connection, gated) in sorted(listeners.items(), key=lambda each: each[0]):
        now, then = redis_py.arrived(connection), before.get(who, b"")
        came = None if now is None or then is None or not now.startswith(then) else replies(now[len(then) :])
        if came is None:
            raise Broken(UNSEEN, BY_PLAIN_TEXT)  # what is unread is a part of the state
        if came:
            gated.arrived.extend(came)
            gated.server.unread[who] = tuple(gated.arrived)
            found.append((who, tuple(came)))
    return tuple(found)


def has_read(world: World, task: Task, gated: Gated, how: Read, *, pushes: bool) -> None:
    """The client has read what came first. `pushes`: it asks for messages, too, where replies are something else."""
    if not gated.arrived:
        opaque(world, "a message that no command of a worker has sent")
        return
    raw = gated.arrived.popleft()
    gated.server.unread[gated.who] = tuple(gated.arrived)
    if raw.startswith(b">") and not pushes:
        opaque(world, "messages that a client reads together with a reply")
        return
    gated.server.answers.was_read(task.worker.index, raw, how)


def opaque(world: World, why: str) -> None:
    recorder: Any = world.recorder
    if recorder:
        recorder.opaque(why)
