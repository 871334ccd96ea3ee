"""Memoised Redis: the same command, sent while the same keys are there, gets the same answer.

What other clients watch, and whose WATCH is broken, belongs to that too (watches.py). Excepted are commands whose
answer depends on other clients in another way, on chance, on real time, or on what no look at the keys
shows: fields that expire by themselves, other databases, the order in a set. A command that may block is memoised where
it was answered at once, and WAIT and WAITAOF while the replicas follow.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from lost_update_lab.model.commands import Op
from lost_update_lab.model.errors import Unanswered
from lost_update_lab.model.memoised_server import MemoisedServer, Who
from lost_update_lab.model.workers import Task
from lost_update_lab.servers.redis.commands import UNANSWERED, WAIT_COMMANDS, subscribes
from lost_update_lab.servers.redis.repeatable import queued_after
from lost_update_lab.servers.redis.scripts import script_of
from lost_update_lab.servers.redis.watches import BROKEN_WATCH, Watch, Whole, described, watch_after, whole

#: words in a command by which it may read, compare or hand on the time that a lease has left
_TIMED = (b"TTL", b"EXPIRETIME", b"\r\nGT\r\n", b"\r\nLT\r\n", b"COPY", b"RENAME")
#: the answers of these two are computed each time from the end of the lease
COUNTED = frozenset({b"TTL", b"PTTL"})
_CLOCK = b"\r\nTIME\r\n"
#: the replies of these are not told as the server sends them
_TOLD_OTHERWISE = COUNTED | {b"EXPIRETIME", b"PEXPIRETIME", b"TIME", b"XPENDING", b"EXEC"}
#: words of commands that deliver a message, or ask since when it is pending
_PENDING = (b"XREADGROUP", b"XCLAIM", b"XAUTOCLAIM", b"XPENDING")

#: the sessions that listen, each with the commands by which it has subscribed; and what came to them, in that order
Listening = tuple[tuple[Who, tuple[bytes, ...]], ...]
Messages = tuple[tuple[Who, tuple[bytes, ...]], ...]


class RedisAnswer(NamedTuple):
    """`exact`, `shown`: the reply as the worker was told it. `contents`: all keys afterwards. `leases`: the keys that
    have one, with its length in µs counted from the command; None: the lease that was there before. `messages`: what
    came to those that listen; where the command's own session does, its reply is among them. `broken`: the sessions
    whose WATCH it has broken."""

    exact: bytes
    shown: str
    error: bool
    contents: bytes
    leases: tuple[tuple[str, int | None], ...] = ()
    messages: Messages = ()
    broken: tuple[Who, ...] = ()


class RedisQuestion(NamedTuple):
    """All that an answer depends on. `fails`: the WATCH before this EXEC is broken. `whole`: those that it may break.
    `heard`: who listens, if that counts."""

    worker: int
    contents: bytes
    leased: frozenset[str]
    queued: bytes
    sent: bytes
    left: str
    clock: int
    fails: bool = False
    whole: Whole = ()
    heard: tuple[Any, ...] = ()


class Read(NamedTuple):
    """A message, or a reply among messages, as its worker read it."""

    exact: bytes
    shown: str
    error: bool


class Holding(Protocol):
    """What a question depends on, of a real or of a memoised server."""

    ahead: int
    timed: bool

    @property
    def lags(self) -> bool: ...
    def contents(self) -> bytes: ...
    def leases(self) -> Mapping[str, int]: ...
    def watching(self) -> Mapping[Who, Watch]: ...


class RedisAnswers:
    """What a server has answered, by everything that its answer depends on. `timed`: also by how long messages have
    been pending."""

    def __init__(self, reading: set[bytes], blocking: set[bytes], timed: bool = False) -> None:
        self.reading, self.blocking, self.timed = reading, blocking, timed
        self.known: dict[Hashable, RedisAnswer] = {}
        #: (worker, message as it was sent) → as it was read; None: now so, now so
        self._reads: dict[tuple[int, bytes], Read | None] = {}
        #: (worker, command) → the error by which its client learned that its connection was gone; None: now so, now so
        self._errors: dict[tuple[int, bytes], tuple[type[Exception], str] | None] = {}
        #: what an error said → its class (gates/redis/fed.py)
        self.raised: dict[str, type[Exception]] = {}
        self._rows: dict[bytes, list[Any]] = {}
        self._without: dict[tuple[bytes, frozenset[str]], bytes] = {}

    def question(
        self,
        of: Holding,
        now: int,
        who: Who,
        queued: bytes | None,
        words: Sequence[bytes],
        sent: bytes,
        listening: Listening = (),
    ) -> RedisQuestion | None:
        """`queued`: what this session's MULTI has queued; None: not known. Returns None if no answer is to be kept."""
        name = words[0].upper()
        if queued is None or (name in WAIT_COMMANDS and of.lags):
            return None  # WAIT is answered at once while every replica follows
        script, leases = script_of(words), of.leases()
        data = (queued + (sent if script is None else script)).upper()
        timed = not (name in COUNTED and not queued) and any(word in data for word in _TIMED)
        left = sorted((k, end - now) for k, end in leases.items()) if timed else ()
        asks = _CLOCK in data or (self.timed and any(word in data for word in _PENDING))
        clock = now + of.ahead if asks else 0
        own = any(each == who for each, _ in listening)
        if own and name in _TOLD_OTHERWISE:
            return None
        heard = (who, listening) if own or b"PUBLISH" in data or subscribes(words) else ()
        executes, watching = not queued or name == b"EXEC", of.watching()
        fails = name == b"EXEC" and watching.get(who, Watch()).broken
        breaks = whole(watching, but=who if name == b"EXEC" else None)
        breaks = breaks if executes and name not in self.reading else ()
        held = of.contents(), frozenset(leases)
        return RedisQuestion(who[0], *held, queued, sent, repr(left), clock, fails, breaks, heard)

    def was_read(self, worker: int, raw: bytes, how: Read) -> None:
        """This worker has read a message that was sent so."""
        key = worker, raw
        self._reads[key] = how if self._reads.get(key, how) == how else None

    def how_read(self, worker: int, raw: bytes) -> Read:
        """Raises Unanswered."""
        found = self._reads.get((worker, raw))
        if found is None:
            raise Unanswered
        return found

    def was_cut(self, worker: int, raw: bytes, error: Exception) -> None:
        """This worker has sent that over a connection that the server had ended."""
        key, how = (worker, raw), (type(error), str(error))
        self._errors[key] = how if self._errors.get(key, how) == how else None

    def how_cut(self, worker: int, raw: bytes) -> tuple[type[Exception], str]:
        """Raises Unanswered."""
        found = self._errors.get((worker, raw))
        if found is None:
            raise Unanswered
        return found

    def rows(self, contents: bytes, rows: Sequence[Any]) -> None:
        """`contents` was made from these (key, type, value)."""
        self._rows[contents] = list(rows)

    def without(self, contents: bytes, keys: frozenset[str]) -> bytes:
        """The contents once these keys are gone."""
        if (contents, keys) not in self._without:
            left = [row for row in self._rows[contents] if name_of(row[0]) not in keys]
            self._without[contents, keys] = found = repr(left).encode()
            self.rows(found, left)
        return self._without[contents, keys]


def name_of(key: bytes) -> str:
    return key.decode(errors="backslashreplace")


class RedisSession(NamedTuple):
    """`queued`: what its MULTI has queued. `cut`: the server has ended it. `listens`: by which commands it subscribed.
    `inbox`: what came and was not read. `op`: what it has sent, and whose reply comes as a message. `watch`: what it
    watches."""

    queued: bytes = b""
    cut: bool = False
    listens: tuple[bytes, ...] = ()
    inbox: tuple[bytes, ...] = ()
    op: Op | None = None
    watch: Watch | None = None


class MemoisedRedis(MemoisedServer):
    """`contents`, `leases`: those of the opening state."""

    fails_over = True

    def __init__(self, name: str, answers: RedisAnswers, contents: bytes, leases: Mapping[str, int]) -> None:
        super().__init__(contents)
        self.name, self.answers, self._leases = name, answers, dict(leases)
        self.timed = answers.timed
        self.ahead = self._now = 0
        self._kept: tuple[bytes, dict[str, int]] | None = None
        self._lost: tuple[str, ...] = ()
        self._failed_over = False

    def leases(self) -> Mapping[str, int]:
        return self._leases

    def before_step(self, op: Op) -> None:
        if self.lags and not op.reads:
            self._lost += (op.text,)

    def in_multi(self, who: Who) -> bool:
        return bool(self.sessions.get(who, RedisSession()).queued)

    def cut(self, who: Who, raw: bytes, checked_out: bool) -> tuple[type[Exception], str] | None:
        """The error with which this command ends, as the connection is gone; None: it is not, or is made again. Raises
        Unanswered."""
        session = self.sessions.get(who, RedisSession(cut=self._failed_over))
        if not session.cut or checked_out:
            return None
        if session.listens:
            raise Unanswered
        return self.answers.how_cut(who[0], raw)

    def answer(
        self, now: int, who: Who, op: Op, words: Sequence[bytes], sent: bytes, checked_out: bool
    ) -> RedisAnswer:
        """Execute it. `checked_out`: a connection that was cut is made again. Raises Unanswered."""
        session = self.sessions.get(who, RedisSession(cut=self._failed_over))
        assert checked_out or not session.cut
        session = RedisSession() if session.cut else session
        asked = self.answers.question(self, now, who, session.queued, words, sent, self.listening())
        if asked is None or (answer := self.answers.known.get(asked)) is None:
            raise Unanswered
        watch = watch_after(session.watch, words, bool(session.queued))
        session = session._replace(queued=queued_after(session.queued, words, sent) or b"", watch=watch)
        if subscribes(words):
            session = session._replace(listens=(*session.listens, sent))
        if session.listens and not sent.startswith(UNANSWERED):
            session = session._replace(op=op)
        self.sessions[who] = session
        for name, came in answer.messages:
            session = self.sessions[name]
            self.sessions[name] = session._replace(inbox=session.inbox + came)
        self._break(answer.broken)
        if not op.reads:
            self.seen = answer.contents
            self._leases = {
                key: self._leases[key] if length is None else now + length for key, length in answer.leases
            }
            self.touched()
        return answer

    def advance(self, now: int) -> list[str]:
        self._now = now
        gone = [key for key, end in self._leases.items() if end <= now]
        if gone:
            self._drop(gone)
            self.touched()
        return gone

    def _drop(self, gone: Sequence[str]) -> None:
        self.seen = self.answers.without(self.seen, frozenset(gone))
        self._leases = {key: end for key, end in self._leases.items() if key not in gone}
        self._break(
            [who for who, keys in whole(self.watching()) if any(name_of(key) in gone for key in keys)]
        )

    def watching(self) -> Mapping[Who, Watch]:
        return {who: session.watch for who, session in self.sessions.items() if session.watch}

    def _break(self, watchers: Sequence[Who]) -> None:
        for who in watchers:
            self.sessions[who] = self.sessions[who]._replace(watch=BROKEN_WATCH)

    def forget(self, who: Who) -> None:
        """The client has lost this connection, and makes another one."""
        self.sessions[who] = RedisSession()

    def end_sessions(self, sessions: Sequence[Who], cut: bool = False) -> None:
        for who in sessions:
            session = self.sessions.get(who, RedisSession())
            if cut or session.queued or session.listens or session.watch:
                self.sessions[who] = RedisSession(cut=True, listens=session.listens)

    def undisturbed(self, op: Op, own: Sequence[Who], others: Sequence[Who]) -> bool:
        known = [self.sessions.get(who, RedisSession()) for who in (*own, *others)]
        return op.reads or not any(each.queued or each.listens or each.watch for each in known)

    def holds(self, sessions: Sequence[Who]) -> bool:
        return any(self.sessions.get(who, RedisSession()).listens for who in sessions)

    # -- subscriptions --------------------------------------------------------------------------------------------

    def has_connected(self, who: Who, handshake: tuple[bytes, ...]) -> None:
        """A client has made its connection, perhaps again, and subscribed in its handshake."""
        self.sessions[who] = RedisSession(listens=handshake)

    def listening(self) -> Listening:
        listen = [(who, session) for who, session in self.sessions.items() if session.listens]
        return tuple(sorted((who, session.listens) for who, session in listen if not session.cut))

    def listens(self, who: Who) -> bool:
        return bool(self.sessions.get(who, RedisSession()).listens)

    def unread(self, who: Who) -> bool:
        """Has anything come that was not read? Raises Unanswered."""
        session = self.sessions[who]
        if session.cut:
            raise Unanswered
        return bool(session.inbox)

    def reads(self, who: Who) -> tuple[Op | None, Read]:
        """Read what has come first. Returns whose reply it is (None: a message), and how it is read. Raises
        Unanswered."""
        session = self.sessions[who]
        if not session.inbox:
            raise Unanswered
        found = self.answers.how_read(who[0], session.inbox[0])
        self.sessions[who] = session._replace(inbox=session.inbox[1:], op=None)
        return session.op, found

    def freed(self, waiting: Sequence[Task]) -> list[Task]:
        """Those for which a message has come, or whose connection is gone."""
        here = [(task, self.sessions[task.session]) for task in waiting]
        return [task for task, session in here if session.inbox or session.cut]

    # -- the replica ----------------------------------------------------------------------------------------------

    def lag(self) -> None:
        self._kept, self.lags, self._lost = (self.seen, self._leases), True, ()

    def fail_over(self) -> str:
        assert self._kept is not None
        (self.seen, self._leases), self._kept, self.lags = self._kept, None, False
        self._failed_over = True
        self._drop([key for key, end in self._leases.items() if end <= self._now])
        self.touched()
        return ", ".join(self._lost) or "nothing"

    def jump(self, ahead: int) -> str:
        gone = [key for key, end in self._leases.items() if end <= self._now + ahead]
        self._leases = {key: end - ahead for key, end in self._leases.items()}
        self._drop(gone)
        self.ahead += ahead
        self.touched()
        return ", ".join(gone) or "nothing"

    def hidden(self) -> bytes:
        unread = {who: each.inbox for who, each in self.sessions.items() if not each.cut}
        return kept(self._kept, self._now) + self.watched() + told(unread) + jumped(self.ahead)

    def watched(self) -> bytes:
        return described(self.watching())

    def watches(self, sessions: Sequence[Who]) -> bool:
        return any(self.sessions.get(who, RedisSession()).watch for who in sessions)


def jumped(ahead: int) -> bytes:
    """By how much the server's clock has jumped: what it tells of the time, and what it takes for a time, moves."""
    return b"+%d" % ahead if ahead else b""


def told(unread: Mapping[Who, tuple[bytes, ...]]) -> bytes:
    """The messages that nobody has read, as a part of the state."""
    here = sorted((who, came) for who, came in unread.items() if came)
    return repr(here).encode() if here else b""


def kept(what: tuple[bytes, Mapping[str, int]] | None, now: int) -> bytes:
    """What a replica that has fallen behind holds, as a part of the state."""
    if what is None:
        return b""
    contents, leases = what
    return contents + repr(sorted((key, end - now) for key, end in leases.items())).encode()
