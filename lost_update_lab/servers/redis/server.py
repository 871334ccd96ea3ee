"""A Redis or Valkey server as the scheduler sees it: its contents, and leases that end in virtual time.

The server never ends a lease by itself (leases.py). When a key is first seen with a new PEXPIRETIME, the end of its
lease is noted in virtual time. When that time has come, the server is told to remove the key (PEXPIRE with 0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lost_update_lab.adapters import redis_py
from lost_update_lab.model.coded_lease import coded, decoded
from lost_update_lab.model.commands import Op
from lost_update_lab.model.memoised_server import Who
from lost_update_lab.model.server_defaults import Plain
from lost_update_lab.model.workers import Task
from lost_update_lab.servers.redis import streams
from lost_update_lab.servers.redis.bypass import RedisBypassDetector
from lost_update_lab.servers.redis.commands import for_ever, packed, shown
from lost_update_lab.servers.redis.library import RedisLibrary
from lost_update_lab.servers.redis.memoised import MemoisedRedis, RedisAnswers, jumped, name_of, told
from lost_update_lab.servers.redis.replica import Replica
from lost_update_lab.servers.redis.scripts import time_of_day, virtual
from lost_update_lab.servers.redis.watches import Watch, Watches, described
from lost_update_lab.servers.redis.wire import address, kinds, readable


class RedisServer(Plain):
    """`url`: a server of the explorer's own. FLUSHALL drops its contents before each run."""

    virtual_by = "the times of pending messages, set by XCLAIM"

    def __init__(self, url: str, name: str = "redis") -> None:
        self.name = name
        self.admin = redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), protocol=2)
        self._connection: Any = self.admin.connection_pool.get_connection()
        self.address = address(self._connection)
        self.database = int(self._connection.db)
        self._bypass = RedisBypassDetector(self.ask, name, self.address)
        texts = {name: files(__package__).joinpath(name) for name in ("contents.lua", "pin.lua", "times.lua")}
        self._scripts = {name: self.ask("SCRIPT", "LOAD", text.read_text()) for name, text in texts.items()}
        self.reading, self.blocking, self.writing = kinds(self.ask("COMMAND"))
        self.answers = RedisAnswers(self.reading, self.blocking)
        self._leases: dict[str, int] = {}
        self._expire_at: dict[str, bytes] = {}
        self._seen: dict[int, tuple[list[Any], dict[str, int], bytes]] = {}
        self.version, self._looked = 0, -1
        self._rows: list[Any] = []
        self._contents = b""
        #: the leases that were granted, or renewed, since the last look; None: what an earlier run has seen
        self.granted: set[str] | None = None
        #: virtual time, in µs; it stands where leases stand
        self.now, self._ask = 0, True
        self._serial = 0  # of each command: it tells apart two grants of a lease within one millisecond
        self.ahead = 0  # how far this server's clock has jumped
        self.uncoded = ""  # a key whose lease was given past the gates
        #: which sessions watch what: their EXEC may fail because of it, so it is a part of the state
        self.watches_of = Watches(self.ask)
        self.changed = True
        self.replica, self.library = Replica(self.ask), RedisLibrary(self.ask)
        self.fails_over, self.learns = True, False
        #: the messages that came to each session that listens, and that it has not read: a part of the state too
        self.unread: dict[Who, tuple[bytes, ...]] = {}
        #: an invariant has asked how long a lease lasts: from then on that is a part of what is judged
        self.told_how_long = False
        #: commands were seen that only a replica, or a disk, can answer
        self.confirming: set[str] = set()

    def ask(self, *command: Any) -> Any:
        """One round trip beside the gates."""
        packed = self._connection.pack_command(*command)
        redis_py.send(self._connection, packed, check_health=False)
        return redis_py.read(self._connection)

    def begin(self, known: int = -1) -> None:
        self._leases, self._expire_at = {}, {}
        self._seen = {version: held for version, held in self._seen.items() if version <= known}
        self.version, self._looked = 0, -1
        self.now, self._ask, self.changed, self.ahead, self.uncoded = 0, True, False, 0, ""
        self.unread, self._serial, self.tells_time = {}, 0, False
        self.watches_of.begin()
        self.replica.begin()
        self.library.begin()

    def memoised(self) -> MemoisedRedis:
        """The memoised server, as this server is now."""
        return MemoisedRedis(self.name, self.answers, self.contents(), self.leases())

    def becomes_timed(self) -> None:
        """From the next run on, since when a message is pending belongs to its contents."""
        self.timed, self.answers = True, RedisAnswers(self.reading, self.blocking, timed=True)
        self._seen.clear()

    def touched(self) -> None:
        self.version, self.changed = self.version + 1, True

    def before_step(self, op: Op) -> None:
        self._ask = True
        if self.lags and not op.reads:
            self.replica.lost.append(op.text)
        self.leases()
        self.granted = set()  # what was there before
        learns = self.learns and not op.reads  # then it must show whether a lease is granted again
        if learns or any(self.version + ahead not in self._seen for ahead in (1, 2, 3)):
            self.note()

    def contents(self) -> bytes:
        self._look()
        return self._contents

    def traces(self) -> bytes:
        return self.contents() + self.hidden()

    def listing(self) -> list[tuple[str, str, str, int | None]]:
        leases = self.leases()
        named = [(name_of(row[0]), row) for row in self._rows if row[3] != -2]
        return [(self.name, key, shown(row[2]), leases.get(key)) for key, row in named]

    def leases(self) -> Mapping[str, int]:
        self._look()
        return self._leases

    def _look(self) -> None:
        """Look once for each version. What an earlier run has seen of it is taken from memory."""
        if self._looked == self.version:
            return
        self._looked = self.version
        if self.version in self._seen:
            self._rows, leases, self._contents = self._seen[self.version]
            self._expire_at = {
                k: at for k, at in self._expire_at.items() if self._leases.get(k) == leases.get(k)
            }
            self._leases, self.granted = dict(leases), None
            return
        times = [streams.since((self.now + self.ahead) // 1000)] if self.timed else []
        rows = self.ask("EVALSHA", self._scripts["contents.lua"], 0, *times)
        leases, expire_at, self.granted = {}, {}, set()
        before = {(k, at): self._leases[k] for k, at in self._expire_at.items() if k in self._leases}
        moved = {
            at: end for (_, at), end in before.items()
        }  # RENAME and COPY hand on what is left of a lease
        for row in rows:
            key, left, at = name_of(row[0]), row[3], row[4]
            if left < 0:
                continue
            expire_at[key] = at
            if end := before.get((key, at)) or moved.get(at):
                leases[key] = end
                if (key, at) not in before:
                    self.granted.add(key)
                continue
            if (length := decoded(left)) is None:
                self.uncoded = key
            leases[key] = self.now + (length or left) * 1000
            self.granted.add(key)
        self._leases, self._expire_at = leases, expire_at
        self._rows = rows
        there = [row[:3] for row in rows if row[3] != -2]
        self._contents = repr(there).encode()
        self.answers.rows(self._contents, there)
        if not self.timed:  # a look also changes the times of messages
            self._seen[self.version] = rows, dict(leases), self._contents

    def note(self) -> None:
        """Ask for the unknown ends of leases on the server: a lease that is then given again shows."""
        times = self.ask("EVALSHA", self._scripts["times.lua"], 0, *self._leases) if self._leases else ()
        self._expire_at = dict(zip(self._leases, times, strict=True))

    def _set(self, ends: Mapping[str, int]) -> None:
        """Give these leases to the server: the time that they have left, as code. Or remove their keys."""
        left = {key: (end - self.now) // 1000 for key, end in ends.items()}
        wanted = [word for key, ms in left.items() for word in (key, coded(ms) if ms > 0 else 0)]
        times = self.ask("EVALSHA", self._scripts["pin.lua"], 0, *wanted) if wanted else ()
        self._expire_at |= dict(zip(ends, times, strict=True))

    def clocked(self, words: list[bytes], raw: bytes, now: int) -> tuple[bytes, bytes]:
        """A command as it is memoised, and as it is sent. Its time-out, its leases, and what a script in it asks of
        this server's clock are virtual."""
        left = {key: (end - self.now) // 1000 for key, end in self.leases().items()}
        self._serial += 1
        known, now = for_ever(words, raw), now + self.ahead
        if self.timed and streams.least_idle(words) is not None:
            return known, packed(streams.asked(words, now // 1000, self.clock(), time_of_day(0)[0] * 1000))
        return virtual(words, known, now, left), virtual(words, known, now, left, self._serial)

    def clock(self) -> int:
        """What its own clock shows, in ms."""
        seconds, micros = self.ask("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def pending(self, reply: Any, now: int) -> Any:
        """An answer to XPENDING, in virtual time."""
        long = self.timed and all(isinstance(each, list) and len(each) == 4 for each in reply)
        return streams.told(reply, (now + self.ahead) // 1000, self.clock()) if long else reply

    def advance(self, now: int) -> list[str]:
        self.now = now
        gone = {key: end for key, end in self.leases().items() if end <= now}
        if gone:
            self.note()
            self._set(gone)
            self.touched()
            self._ask = True
        return list(gone)

    def watch(self) -> None:
        self._bypass.watch()

    def bypassed(self) -> str:
        return self._bypass.bypassed()

    # -- sessions -----------------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """When this returns, the server has sent whatever earlier commands made it send to any client."""
        self.ask("PING")

    def freed(self, waiting: Sequence[Task]) -> list[Task]:
        if not self._ask:
            return []
        self._ask = False
        self.barrier()
        return [task for task in waiting if readable(task.session)]

    def tells_of_keys(self) -> bool:
        """Does it send messages of its own, when keys change (notify-keyspace-events)?"""
        try:
            return bool(self.ask("CONFIG", "GET", "notify-keyspace-events")[1])
        except redis.ResponseError:
            return True

    def unblock(self, client: int) -> None:
        """The time-out of a blocking command has come."""
        self.ask("CLIENT", "UNBLOCK", client, "TIMEOUT")
        self._ask = True

    def stop(self, session: Any) -> None:
        """Its client has gone away."""
        self.unblock(session.explorer.number)

    def end_sessions(self, sessions: Sequence[Any], cut: bool = False) -> None:
        """The server forgets their places in queues, and their subscriptions. A session that has neither is ended only
        if its client shall notice (`cut`): connecting again costs more than a schedule."""
        for gated in _gates(sessions):
            if gated.number > 0 and (cut or gated.op or gated.mode or gated.subscribed):
                with suppress(redis.ResponseError):
                    self.ask("CLIENT", "KILL", "ID", gated.number)
                self.watches_of.forget(gated.number)
                gated.number = -1
                gated.mode = gated.mode if gated.subscribed else b""
                self.unread.pop(gated.who, None)
        self._ask = True

    def undisturbed(self, op: Op, own: Sequence[Any], others: Sequence[Any]) -> bool:
        """What a MULTI has queued, and which clients watch or subscribe, is not part of the contents."""
        return op.reads or not any(gate.mode or gate.subscribed for gate in _gates((*own, *others)))

    def holds(self, sessions: Sequence[Any]) -> bool:
        return any(gate.subscribed for gate in _gates(sessions))

    # -- the replica ----------------------------------------------------------------------------------------------

    @property
    def lags(self) -> bool:
        return self.replica.lags

    def lag(self) -> None:
        keys = [row[0] for row in self.ask("EVALSHA", self._scripts["contents.lua"], 0)]
        self.replica.lag(keys, self.leases(), self.contents())

    def fail_over(self) -> str:
        self._leases, self._contents = self.replica.take_over(self.now)
        self.changed = self._ask = True
        self._set(self._leases)
        self.touched()
        return ", ".join(self.replica.lost) or "nothing"

    def jump(self, ahead: int) -> str:
        gone = [key for key, end in self.leases().items() if end <= self.now + ahead]
        self._leases = {key: end - ahead for key, end in self._leases.items()}
        self.ahead += ahead
        self.note()
        self._set({key: self._leases[key] for key in gone})
        self.touched()
        self._ask = True
        return ", ".join(gone) or "nothing"

    def hidden(self) -> bytes:
        return self.replica.hidden(self.now) + self.watched() + told(self.unread) + jumped(self.ahead)

    def watching(self) -> Mapping[Who, Watch]:
        return self.watches_of.at(self.version)

    def watched(self) -> bytes:
        return described(self.watching())

    def watches(self, sessions: Sequence[Any]) -> bool:
        return any(self.watches_of.name(gate.number) for gate in _gates(sessions))

    def close(self) -> None:
        self._connection.disconnect()
        self.admin.close()


def _gates(sessions: Sequence[Any]) -> list[Any]:
    """What the gates know of these connections (redis/connections.py)."""
    return [found for connection in sessions if (found := getattr(connection, "explorer", None))]
