"""One command to Redis as a step: executed by a thread, replayed from the recording, or known with its answer."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import redis

from lost_update_lab.adapters import redis_py
from lost_update_lab.gates.redis import unknown_scripts
from lost_update_lab.gates.redis.beyond import asks_since_when, beyond
from lost_update_lab.gates.redis.connections import (
    Gated,
    changes_mode,
    connect_again,
    cut,
    free_one,
    gate_of,
    known,
)
from lost_update_lab.gates.redis.messages import (
    begins_to_listen,
    has_read,
    listening,
    lose,
    news,
    opaque,
    read_in_memory,
    unread,
)
from lost_update_lab.gates.redis.waits import until_readable
from lost_update_lab.memo.recording import Recording
from lost_update_lab.model.commands import Op
from lost_update_lab.model.memoised_server import Who
from lost_update_lab.model.workers import Standing, Task
from lost_update_lab.schedule import pending
from lost_update_lab.schedule.world import World
from lost_update_lab.servers.redis.commands import UNANSWERED, for_ever, shown, subscribes, time_out, waits
from lost_update_lab.servers.redis.memoised import MemoisedRedis, Read, RedisAnswer
from lost_update_lab.servers.redis.repeatable import queued_after, repeatable
from lost_update_lab.servers.redis.scripts import (
    asks_for_time,
    goes_by_clock,
    script_of,
    time_of_day,
    virtual,
)
from lost_update_lab.servers.redis.server import RedisServer
from lost_update_lab.servers.redis.wire import TELLS, left

#: s; a command that cannot block is answered; the watchdog of the run (run.py) catches a server that hangs
SURE_WITHIN = 60.0
_LOCAL = {b"MULTI", b"PING", b"ECHO"}
_TTL = (b"PTTL ", b"TTL ")
#: what a thread is told whose command is answered by a message
SENT = "sent"
#: what a server says that has to be told a script
NO_SCRIPT = b"-NOSCRIPT"


@dataclass(slots=True)
class RedisCommand:
    """A command as it was recorded. `name`: the connection's (connections.name_of). `handshake`: the subscriptions of
    one that was just made."""

    server: str
    name: tuple[int, int]
    words: list[bytes]
    raw: bytes
    checked_out: bool
    handshake: tuple[bytes, ...] = ()

    def same(self) -> Hashable:
        return self.server, self.name, self.raw, self.checked_out, self.handshake

    def play(self, world: World, task: Task, recording: Recording) -> Standing:
        connection = free_one(task, self.server, self.name, self.checked_out, recording)
        args, keywords = recording.reading(task.worker, self.raw)
        gated = gate_of(world, task, connection)
        gated.checked_out, gated.who = self.checked_out, (task.worker.index, *self.name)
        gated.outbox.append((self.words, self.raw))
        with suppress(redis.RedisError):
            yield from deliver(world, task, connection, gated)
            op, gated.op = gated.op, None
            assert op is not None
            receive(world, task, connection, gated, op, *args, **keywords)

    def stand(self, world: World, task: Task) -> None:
        who, server = (task.worker.index, *self.name), world.servers[self.server]
        assert isinstance(server, MemoisedRedis)
        task.worker.sessions.setdefault(self.server, {})[who] = task
        if self.handshake:
            server.has_connected(who, self.handshake)
        pending.stand(
            world, task, _describe(self.server, server.in_multi(who), server.answers.reading, self.words)
        )

    def turn(self, world: World, task: Task, recording: Recording) -> None:
        who, server, op = (task.worker.index, *self.name), world.servers[self.server], task.op
        assert isinstance(server, MemoisedRedis)
        assert op is not None
        if gone := server.cut(who, self.raw, self.checked_out):
            _told_of(world, task, op, *gone)
            return
        by_message = server.listens(who) or subscribes(self.words)
        answered = not self.raw.startswith(UNANSWERED)
        if answered and not by_message:
            recording.reading(task.worker, self.raw)
        asks_since_when(world, task, self.words)
        lasting = {key: (end - world.now) // 1000 for key, end in server.leases().items()}
        plain = for_ever(self.words, self.raw.removeprefix(UNANSWERED))
        sent = _asked(self.raw, virtual(self.words, plain, world.now + server.ahead, lasting))
        answer = server.answer(world.now, who, op, self.words, sent, self.checked_out)
        if not answered:
            _is_unanswered(world, task, op)
            if task.loses_reply:
                server.forget(who)
                lose(world, task)
            return
        if subscribes(self.words):
            pending.hear(world, task, SENT)
            return
        if by_message:
            read_in_memory(world, task, server, who)
            return
        exact, shows = answer.exact, answer.shown
        if not answer.error and op.identity.startswith(_TTL) and exact.lstrip(b"-").isdigit():
            shows = str(left(op.text, int(exact), server.leases(), world.now))
            exact = shows.encode()
        _told(world, task, op, shows, exact)
        pending.hear(world, task, ("error", exact.decode()) if answer.error else exact)
        if task.loses_reply and not answer.error:
            server.forget(who)
            lose(world, task)


def deliver(world: World, task: Task, connection: Any, gated: Gated) -> Standing:
    words, raw = gated.outbox.popleft()
    gated.sent, gated.stands = raw, True
    answered = not raw.startswith(UNANSWERED)
    op = _describe(gated.server.name, gated.mode == b"MULTI", gated.server.reading, words)
    try:
        yield from pending.standing(world, task, op)
    except GeneratorExit:  # its client has gone, and it was sent
        gated.outbox.appendleft((words, raw))
        raise
    finally:
        gated.stands = False
    world.error = world.error or beyond(world, task, gated, words)
    try:
        if gated.number < 0 and gated.checked_out:
            connect_again(connection, gated)
            gated.subscribed = connection.explorer_listens
        gated.checked_out = False
        known, sent = gated.server.clocked(words, raw.removeprefix(UNANSWERED), world.now)
        _ask(world, gated, words, _asked(raw, known))
        before = unread(world, gated.server.name)
        redis_py.send(connection, [sent] if answered else [UNANSWERED, sent], check_health=False)
    except redis.RedisError as error:
        _broke(world, task, gated, op, error)
        raise
    if not answered:
        _unanswered(world, task, connection, gated, op, before)
        return
    yield from _until_answered(world, task, connection, gated, op, words, raw, before)


def _until_answered(
    world: World,
    task: Task,
    connection: Any,
    gated: Gated,
    op: Op,
    words: list[bytes],
    raw: bytes,
    before: dict[Who, bytes | None],
) -> Standing:
    """The command was sent. `before`: what had come to those that listen."""
    gated.op, gated.news, sent_at = op, (), world.decisions
    name = words[0].upper()
    changes_mode(gated, op, words)
    if subscribes(words):
        gated.subscribed += (raw,)
        begins_to_listen(world, gated)
    try:
        if gated.op.local or name not in gated.server.blocking or not waits(name, words):
            redis_py.answers_within(connection, SURE_WITHIN)
        else:
            limit = redis_py.reads_within(connection)
            yield from until_readable(world, task, connection, gated, time_out(name, words), limit)
    except redis.RedisError as error:
        _broke(world, task, gated, op, error)
        raise
    finally:
        if not op.reads:
            gated.server.touched()
    if world.decisions == sent_at:  # meanwhile others may have sent messages
        gated.news = news(world, gated, before)
    if gated.subscribed:
        _learn(world, gated, op, b"", "")  # its reply is among the messages
    if subscribes(words):
        gated.recorded = None
        pending.hear(world, task, SENT)


def takes_effect(gated: Gated) -> bool:
    """Will what was sent, and has not been answered, change anything?"""
    in_multi, ops = gated.mode == b"MULTI", [gated.op] if gated.op else []
    for words, _ in gated.outbox:
        ops.append(_describe(gated.server.name, in_multi, gated.server.reading, words))
        in_multi |= words[0].upper() == b"MULTI"
    return not all(op.reads for op in ops)


def unheard(world: World, task: Task, connection: Any, gated: Gated) -> Standing:
    """What was sent takes effect, one command after the other, and nobody hears the replies. A command that waits ends
    when the server learns that its client is gone."""
    with suppress(redis.RedisError):
        while gated.op or gated.outbox:
            task.op, task.canceling = gated.op, True
            if gated.op:
                yield from until_readable(world, task, connection, gated, None)
            else:
                yield from deliver(world, task, connection, gated)
            op, gated.op = gated.op, None
            if op:
                receive(world, task, connection, gated, op)
    gated.op, gated.mode = None, b""
    cut(connection, gated)


def _unanswered(
    world: World, task: Task, connection: Any, gated: Gated, op: Op, before: dict[Who, bytes | None]
) -> None:
    """The command was sent, and only a message can answer it. Raises ConnectionError if the fault is a lost reply: then
    the connection is lost."""
    gated.server.barrier()
    gated.server.touched()
    gated.recorded, gated.news = None, news(world, gated, before)
    changed = gated.asked and gated.server.contents() != gated.asked.contents
    if changed or gated.news:  # else it may have met an error
        _learn(world, gated, op, b"", "")
    _is_unanswered(world, task, op)
    if task.loses_reply:
        cut(connection, gated)
        lose(world, task)
        raise redis.ConnectionError("Connection closed by server.")


def _asked(raw: bytes, sent: bytes) -> bytes:
    """What is sent, as it is memoised: that no reply is wanted belongs to it."""
    return UNANSWERED + sent if raw.startswith(UNANSWERED) else sent


def _is_unanswered(world: World, task: Task, op: Op) -> None:
    _told(world, task, op, "(no reply)", b"no reply")
    pending.hear(world, task, "no reply")


def _describe(server: str, in_multi: bool, reading: set[bytes], words: Sequence[bytes]) -> Op:
    name = words[0].upper()
    local = name in _LOCAL or (in_multi and name not in (b"EXEC", b"DISCARD"))
    text = " ".join([name.decode(), *(word.decode(errors="backslashreplace") for word in words[1:])])
    identity = b" ".join([name, *words[1:]])
    timed, dated = asks_for_time(words), in_multi and local and goes_by_clock(words)
    return Op(server, text, identity, local, reads=local or name in reading, timed=timed, dated=dated)


def receive(
    world: World, task: Task, connection: Any, gated: Gated, op: Op, *args: Any, **keywords: Any
) -> Any:
    unnoted = world.recorder.unnoted if world.recorder else 0
    try:
        reply = redis_py.read(connection, *args, **keywords)
    except redis.ResponseError as error:
        world.warming_up |= unknown_scripts.hears(task.worker, op.text, error)
        exact, told = str(error).encode(), f"({error})"
        gated.server.answers.raised[str(error)] = type(error)
        _has_read(world, task, gated, op, Read(exact, told, error=True), keywords)
        _told(world, task, op, told, exact)
        pending.hear(world, task, ("error", str(error)))
        raise
    except redis.RedisError as error:
        _broke(world, task, gated, op, error)
        raise
    if gated.subscribed and world.recorder and world.recorder.unnoted != unnoted:
        opaque(world, "code of a worker that is called while a message is read")
    reply = _in_virtual_time(world, gated, op, reply)
    exact, told = repr(reply).encode(), shown(reply)
    _has_read(world, task, gated, op, Read(exact, told, error=False), keywords)
    _told(world, task, op, told, exact)
    pending.hear(world, task, exact)
    if task.loses_reply:
        cut(connection, gated)
        lose(world, task)
        raise redis.ConnectionError("Connection closed by server.")
    return reply


def _in_virtual_time(world: World, gated: Gated, op: Op, reply: Any) -> Any:
    """What the server says of its clock, and of leases. In the reply to EXEC: for each command its MULTI had queued."""
    name = op.text.partition(" ")[0].encode()
    if name == b"EXEC" and isinstance(reply, list) and len(reply) == len(gated.batch):
        return [_in_virtual_time(world, gated, *each) for each in zip(gated.batch, reply, strict=True)]
    if isinstance(reply, int) and name in TELLS:
        # by the server's time: where leases stand, so does this
        return left(op.text, reply, gated.server.leases(), gated.server.now)
    if name == b"XPENDING" and isinstance(reply, list):
        return gated.server.pending(reply, world.now)
    if name == b"TIME" and isinstance(reply, list):
        clock = [str(each) for each in time_of_day(world.now + gated.server.ahead)]
        return [word.encode() for word in clock] if isinstance(reply[0], bytes) else clock
    return reply


def _broke(world: World, task: Task, gated: Gated, op: Op, error: redis.RedisError) -> None:
    if world.learns and gated.number < 0 and gated.sent:
        gated.server.answers.was_cut(gated.who[0], gated.sent, error)
    _told_of(world, task, op, type(error), str(error))


def _told_of(world: World, task: Task, op: Op, kind: type[Exception], text: str) -> None:
    """The client learns that its connection is gone: a worker that sends the same again is not where it was before."""
    _told(world, task, op, f"({text})", b"broken " + kind.__name__.encode())
    pending.hear(world, task, ("broken", kind, text))


def _told(world: World, task: Task, op: Op, reply: str, exact: bytes) -> None:
    if op.identity.startswith(_TTL):
        task.history.add(op.identity, left=exact)
    else:
        task.history.add(op.identity, exact)
    task.timed |= op.identity == b"EXEC" and exact == b"None"  # the same try may succeed, whatever it sees
    pending.tell(world, task, op, reply)


# -- what is known from then on ---------------------------------------------------------------------------------------


def _ask(world: World, gated: Gated, words: Sequence[bytes], sent: bytes) -> None:
    """Note what the answer will depend on."""
    server = gated.server
    gated.asked, repeats = None, repeatable(words, script_of(words))
    if world.learns and repeats:
        here = listening(world, server.name)
        gated.asked = server.answers.question(server, world.now, gated.who, gated.queued, words, sent, here)
    gated.queued = queued_after(gated.queued, words, sent) if repeats or not gated.queued else None


def _has_read(world: World, task: Task, gated: Gated, op: Op, how: Read, keywords: Any) -> None:
    """The client has read a reply, or a message."""
    if gated.subscribed:
        has_read(world, task, gated, how, pushes=bool(keywords.get("push_request")))
    else:
        _learn(world, gated, op, how.exact, how.shown, how.error)


def _learn(world: World, gated: Gated, op: Op, exact: bytes, told: str, error: bool = False) -> None:
    server, asked, messages = gated.server, gated.asked, gated.news
    loads = any(raw.startswith(NO_SCRIPT) for _, came in messages for raw in came)
    here = any(_waits_for_reply(task, server) for task in world.waiting_line)
    if asked is None or here or loads or world.warming_up:
        return
    if messages and not asked.heard:
        opaque(world, "messages that no PUBLISH has sent")
        return
    contents, leases, granted = server.contents(), server.leases(), server.granted
    if op.reads or granted is not None:
        ends = tuple(
            (key, end - world.now if key in (granted or ()) else None) for key, end in leases.items()
        )
        watching = server.watching()
        broken = tuple(who for who, _ in asked.whole if who in watching and watching[who].broken)
        server.answers.known[asked] = RedisAnswer(exact, told, error, contents, ends, messages, broken)


def _waits_for_reply(task: Task, server: RedisServer) -> bool:
    """Is a command of this thread blocked in the server? Who waits for a message changes nothing there."""
    gated = known(task.session) if task.op and task.op.server == server.name else None
    return gated is not None and gated.op is not None
