"""Memoised Redis: the same command, sent while the same keys are there, gets the same answer.

Excepted are commands whose answer depends on other clients, on chance, on real time, or on what no look at the keys
shows: fields that expire by themselves, other databases, the order in a set. A command that may block is memoised where
it was answered at once, and WAIT and WAITAOF while the replicas follow.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from lost_update_lab.model.commands import Op
from lost_update_lab.model.errors import Unanswered
from lost_update_lab.model.memoised_server import MemoisedServer, Who
from lost_update_lab.servers.redis.commands import WAITS
from lost_update_lab.servers.redis.scripts import called, script_of

#: words in a command by which it may read, or compare, the time that a lease has left
_TIMED = (b"TTL", b"EXPIRETIME", b"\r\nGT\r\n", b"\r\nLT\r\n")
#: the answers of these two are computed each time from the end of the lease
COUNTED = frozenset({b"TTL", b"PTTL"})
_CLOCK = b"\r\nTIME\r\n"
#: words of commands that deliver a message, or ask since when it is pending
_PENDING = (b"XREADGROUP", b"XCLAIM", b"XAUTOCLAIM", b"XPENDING")


_REPEATABLE = frozenset(
    b"BLMOVE BLPOP BRPOP BRPOPLPUSH BZPOPMAX BZPOPMIN "
    b"APPEND COPY DECR DECRBY DEL DELIFEQ DISCARD ECHO EVAL EVALSHA EXEC EXISTS EXPIRE GET GETBIT GETDEL GETEX "
    b"GETRANGE GETSET HDEL HEXISTS HGET HGETALL HINCRBY HINCRBYFLOAT HKEYS HLEN HMGET HMSET HSET HSETNX HVALS "
    b"INCR INCRBY INCRBYFLOAT LINDEX LINSERT LLEN LMOVE LPOP LPOS LPUSH LPUSHX LRANGE LREM LSET LTRIM MGET "
    b"MSET MSETNX MULTI PERSIST PEXPIRE PING PSETEX PTTL PUBLISH RENAME RENAMENX RPOP RPOPLPUSH RPUSH RPUSHX "
    b"SADD SCARD SET SETBIT SETEX SETNX SETRANGE SISMEMBER SMISMEMBER SREM STRLEN TIME TTL TYPE UNLINK WAIT "
    b"WAITAOF XACK XADD XAUTOCLAIM XCLAIM XDEL XGROUP XLEN XPENDING XRANGE XREAD XREADGROUP XREVRANGE XTRIM "
    b"ZADD ZCARD ZCOUNT ZINCRBY ZMSCORE ZPOPMAX ZPOPMIN ZRANGE ZRANGEBYSCORE ZRANK ZREM "
    b"ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANK ZSCORE".split()
)
_CHANCE = re.compile(rb"\brandom\b|\bos\s*\.")


class Answer(NamedTuple):
    """`exact`, `shown`: the reply as the worker was told it. `contents`: all keys afterwards. `leases`: the keys that
    have one, with its length in µs counted from the command; None: the lease that was there before."""

    exact: bytes
    shown: str
    error: bool
    contents: bytes
    leases: tuple[tuple[str, int | None], ...] = ()


class Holding(Protocol):
    """What a question depends on, of a real or of a memoised server."""

    ahead: int
    timed: bool

    @property
    def lags(self) -> bool: ...
    def contents(self) -> bytes: ...
    def leases(self) -> Mapping[str, int]: ...


class Answers:
    """What a server has answered, by everything that its answer depends on. `timed`: also by how long messages have
    been pending."""

    def __init__(self, reading: set[bytes], blocking: set[bytes], timed: bool = False) -> None:
        self.reading, self.blocking, self.timed = reading, blocking, timed
        self.known: dict[Hashable, Answer] = {}
        self._rows: dict[bytes, list[Any]] = {}
        self._without: dict[tuple[bytes, frozenset[str]], bytes] = {}

    def question(
        self, of: Holding, now: int, who: Who, queued: bytes | None, words: Sequence[bytes], sent: bytes
    ) -> Hashable | None:
        """`queued`: what this session's MULTI has queued; None: not known. Returns None if no answer is to be kept."""
        name = words[0].upper()
        if queued is None or (name in WAITS and of.lags):
            return None  # WAIT is answered at once while every replica follows
        script, leases = script_of(words), of.leases()
        data = (queued + (sent if script is None else script)).upper()
        timed = not (name in COUNTED and not queued) and any(word in data for word in _TIMED)
        left = sorted((k, end - now) for k, end in leases.items()) if timed else ()
        asks = _CLOCK in data or (self.timed and any(word in data for word in _PENDING))
        clock = now + of.ahead if asks else 0
        return who[0], of.contents(), frozenset(leases), queued, sent, repr(left), clock

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


class Session(NamedTuple):
    """`queued`: what its MULTI has queued. `cut`: the server has ended it."""

    queued: bytes = b""
    cut: bool = False


class MemoisedRedis(MemoisedServer):
    """`contents`, `leases`: those of the opening state."""

    fails_over = True

    def __init__(self, name: str, answers: Answers, contents: bytes, leases: Mapping[str, int]) -> None:
        super().__init__(contents, leases)
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
        return bool(self.sessions.get(who, Session()).queued)

    def answer(
        self, now: int, who: Who, op: Op, words: Sequence[bytes], sent: bytes, checked_out: bool
    ) -> Answer:
        """Execute it. `checked_out`: a connection that was cut is made again. Raises Unanswered."""
        session = self.sessions.get(who, Session(cut=self._failed_over))
        if session.cut and not checked_out:
            raise Unanswered
        asked = self.answers.question(self, now, who, session.queued, words, sent)
        if asked is None or (answer := self.answers.known.get(asked)) is None:
            raise Unanswered
        self.sessions[who] = Session(queued_after(session.queued, words, sent) or b"")
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

    def forget(self, who: Who) -> None:
        """The client has lost this connection, and makes another one."""
        self.sessions[who] = Session()

    def end_sessions(self, sessions: Sequence[Who], cut: bool = False) -> None:
        for who in sessions:
            if cut or self.in_multi(who):
                self.sessions[who] = Session(cut=True)

    def undisturbed(self, op: Op, own: Sequence[Who], others: Sequence[Who]) -> bool:
        return op.reads or not any(map(self.in_multi, (*own, *others)))

    def holds(self, sessions: Sequence[Who]) -> bool:
        return False

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
        return kept(self._kept, self._now)


def kept(what: tuple[bytes, Mapping[str, int]] | None, now: int) -> bytes:
    """What a replica that has fallen behind holds, as a part of the state."""
    if what is None:
        return b""
    contents, leases = what
    return contents + repr(sorted((key, end - now) for key, end in leases.items())).encode()


def queued_after(queued: bytes | None, words: Sequence[bytes], sent: bytes) -> bytes | None:
    """What a session has queued after this command. None: it watches, or subscribes, and is no longer known."""
    name = words[0].upper()
    if name == b"WATCH" or name.endswith(b"SUBSCRIBE"):
        return None
    if name in (b"EXEC", b"DISCARD", b"UNWATCH"):
        return b""
    if queued is None or name == b"MULTI" or queued:
        return None if queued is None else queued + sent
    return b""


def repeatable(words: Sequence[bytes], script: bytes | None) -> bool:
    """Does it get the same answer whenever the same keys are there, with the same values?

    `script`: the text of the script that the command calls; None: it is not known, or none is called."""
    name = words[0].upper()
    if name not in _REPEATABLE:
        return False
    if name not in (b"EVAL", b"EVALSHA"):
        return True
    if script is None or _CHANCE.search(script):
        return False
    names = called(script)
    return names is not None and names <= _REPEATABLE
