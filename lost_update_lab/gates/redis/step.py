"""One command to Redis as a step: executed by a thread, played from the recording, or known with its answer."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import redis
from redis.connection import AbstractConnection

from lost_update_lab.gates.redis.connections import Gated, connect_again, free_one, gate_of
from lost_update_lab.gates.redis.waits import until_readable
from lost_update_lab.memo.playing import Standing
from lost_update_lab.model.commands import Op
from lost_update_lab.model.workers import Task
from lost_update_lab.runs.place import Here
from lost_update_lab.servers.redis.commands import UNANSWERED, for_ever, shown, time_out
from lost_update_lab.servers.redis.memory import Answer, KnownRedis, queued_after
from lost_update_lab.servers.redis.repeatable import repeatable
from lost_update_lab.servers.redis.scripts import script_of, time_of_day, virtual
from lost_update_lab.servers.redis.wire import left

if TYPE_CHECKING:
    from lost_update_lab.memo.recording import Recording
    from lost_update_lab.runs.in_memory_run import Composed
    from lost_update_lab.runs.run import Run

_send: Any = AbstractConnection.send_packed_command
_read: Any = AbstractConnection.read_response

#: a command that cannot block is answered; the watchdog of the run (run.py) is there for a server that hangs
SURE_WITHIN = 60.0
_LOCAL = {b"MULTI", b"PING", b"ECHO"}
_TTL = (b"PTTL ", b"TTL ")


@dataclass(slots=True)
class RedisCommand:
    """A command as it was recorded. `name`: of the connection (redis_connections.name_of)."""

    server: str
    name: tuple[int, int]
    words: list[bytes]
    raw: bytes
    checked_out: bool

    def same(self) -> Hashable:
        return self.server, self.name, self.raw, self.checked_out

    def play(self, run: Run, task: Task, recording: Recording) -> Standing:
        connection, place = (
            free_one(task, self.server, self.name, self.checked_out, recording),
            Here(run, task),
        )
        args, keywords = recording.reading(task.worker, self.raw)
        gated = gate_of(place, connection)
        gated.checked_out, gated.who = self.checked_out, (task.worker.index, *self.name)
        gated.outbox.append((self.words, self.raw))
        with suppress(redis.RedisError):
            yield from deliver(place, connection, gated)
            op, gated.op = gated.op, None
            assert op is not None
            receive(place, connection, gated, op, *args, **keywords)

    def stand(self, run: Composed, task: Task) -> None:
        who, server = (task.worker.index, *self.name), run.servers[self.server]
        assert isinstance(server, KnownRedis)
        task.worker.sessions.setdefault(self.server, {})[who] = task
        run.stand(task, _describe(self.server, server.in_multi(who), server.answers.reading, self.words))

    def turn(self, run: Composed, task: Task) -> None:
        who, server, op = (task.worker.index, *self.name), run.servers[self.server], task.op
        assert isinstance(server, KnownRedis)
        assert op is not None
        run.recording.reading(task.worker, self.raw)
        lasting = {key: (end - run.now) // 1000 for key, end in server.leases().items()}
        sent = virtual(self.words, for_ever(self.words, self.raw), run.now + server.ahead, lasting)
        answer = server.answer(run.now, who, op, self.words, sent, self.checked_out)
        exact, shows = answer.exact, answer.shown
        if not answer.error and op.identity.startswith(_TTL) and exact.lstrip(b"-").isdigit():
            shows = str(left(op.text, int(exact), server.leases(), run.now))
            exact = shows.encode()
        _told(run, task, op, shows, exact)
        run.heard(task, ("error", exact.decode()) if answer.error else exact)
        if task.loses_reply and not answer.error:
            server.forget(who)
            _lose(run, task)


def deliver(place: Here, connection: Any, gated: Gated) -> Standing:
    words, raw = gated.outbox.popleft()
    answered = not raw.startswith(UNANSWERED)
    op = _describe(gated.server.name, gated.mode == b"MULTI", gated.server.reading, words)
    yield from place.run.standing(place.task, op)
    try:
        if gated.number < 0 and gated.checked_out:
            connect_again(connection, gated)
        gated.checked_out = False
        sent = gated.server.clocked(words, raw.removeprefix(UNANSWERED), place.run.now)
        _ask(place, gated, op, words, sent)
        _send(connection, [sent] if answered else [UNANSWERED, sent], check_health=False)
    except redis.RedisError as error:
        _broke(place, op, error)
        raise
    if not answered:
        _unanswered(place, connection, gated, op)
        return
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


def _unanswered(place: Here, connection: Any, gated: Gated, op: Op) -> None:
    """It was sent, and nothing will be heard of it but by a message. Raises ConnectionError where a lost reply is
    the fault: then it is the connection that is lost."""
    gated.asked = None
    gated.server.barrier()
    gated.server.touched()
    _told(place.run, place.task, op, "(no reply)", b"no reply")
    if place.task.loses_reply:
        gated.outbox.clear()
        connection.disconnect()
        _lose(place.run, place.task)
        raise redis.ConnectionError("Connection closed by server.")


def _describe(server: str, in_multi: bool, reading: set[bytes], words: Sequence[bytes]) -> Op:
    name = words[0].upper()
    local = name in _LOCAL or (in_multi and name not in (b"EXEC", b"DISCARD"))
    text = " ".join([name.decode(), *(word.decode(errors="backslashreplace") for word in words[1:])])
    return Op(server, text, b" ".join([name, *words[1:]]), local, reads=local or name in reading)


def receive(place: Here, connection: Any, gated: Gated, op: Op, *args: Any, **keywords: Any) -> Any:
    run, task = place.run, place.task
    try:
        reply = _read(connection, *args, **keywords)
    except redis.ResponseError as error:
        run.cold |= isinstance(error, redis.exceptions.NoScriptError)
        exact, told = str(error).encode(), f"({error})"
        _learn(place, gated, op, exact, told, error=True)
        _told(run, task, op, told, exact)
        run.heard(task, ("error", str(error)))
        raise
    except redis.RedisError as error:
        _broke(place, op, error)
        raise
    if isinstance(reply, int) and op.identity.startswith(_TTL):
        reply = left(op.text, reply, gated.server.leases(), run.now)
    if op.identity == b"TIME" and isinstance(reply, list):
        clock = [str(each) for each in time_of_day(run.now + gated.server.ahead)]
        reply = [word.encode() for word in clock] if isinstance(reply[0], bytes) else clock
    exact, told = repr(reply).encode(), shown(reply)
    _learn(place, gated, op, exact, told)
    _told(run, task, op, told, exact)
    run.heard(task, exact)
    if task.loses_reply:
        gated.outbox.clear()
        connection.disconnect()
        _lose(run, task)
        raise redis.ConnectionError("Connection closed by server.")
    return reply


def _broke(place: Here, op: Op, error: redis.RedisError) -> None:
    """The client learns that its connection is gone: whoever sends the same again is not where it was before."""
    _told(place.run, place.task, op, f"({error})", b"broken " + type(error).__name__.encode())
    place.run.heard(place.task, ("broken", type(error), str(error)))


def _told(run: Run, task: Task, op: Op, reply: str, exact: bytes) -> None:
    if op.identity.startswith(_TTL):
        task.history.add(op.identity, left=exact)
    else:
        task.history.add(op.identity, exact)
    run.told(task, op, reply)


def _lose(run: Run, task: Task) -> None:
    run.record(task.worker.name, task.name, "lost-reply", "the reply is lost", "connection lost")
    task.history.add(b"lost")
    run.heard(task, "lost")


# -- what is known from then on ---------------------------------------------------------------------------------------


def _ask(place: Here, gated: Gated, op: Op, words: Sequence[bytes], sent: bytes) -> None:
    """Note what the answer will depend on. Of a lease that is there it has to be seen whether it is granted again."""
    run, server = place.run, gated.server
    gated.asked, repeats = None, gated.database == 0 and repeatable(words, script_of(words))
    if run.learns and run.decisions > run.beaten and repeats:
        if not op.reads and not server.just_pinned:
            server.pin()
        gated.asked = server.answers.question(server, run.now, gated.who, gated.queued, words, sent)
    gated.queued = queued_after(gated.queued, words, sent) if repeats or not gated.queued else None
    if words[0].upper() == b"SELECT":
        gated.database = -1


def _learn(place: Here, gated: Gated, op: Op, exact: bytes, told: str, error: bool = False) -> None:
    run, server, asked = place.run, gated.server, gated.asked
    here = any(task.op and task.op.server == server.name for task in run.waiting_line)
    if asked is None or here or run.cold:
        return
    contents, leases, granted = server.contents(), server.leases(), server.granted
    if op.reads or granted is not None:
        ends = tuple((key, end - run.now if key in (granted or ()) else None) for key, end in leases.items())
        server.answers.known[asked] = Answer(exact, told, error, contents, ends)
