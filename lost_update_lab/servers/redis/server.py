"""A Redis or Valkey server, as the scheduler sees it: its contents, and leases that end in virtual time.

A lease's end is noted when its key is first seen with a new PEXPIRETIME. Before a worker's command is executed,
`pin.lua` gives every key the time that it has left by the virtual clock; when that is over, the server itself
removes the key (PEXPIRE with 0).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lost_update_lab.model.commands import Op
from lost_update_lab.model.server_defaults import Plain
from lost_update_lab.model.server_memory import Seen
from lost_update_lab.model.workers import Task
from lost_update_lab.runs.place import beside
from lost_update_lab.servers.redis.bypass import Strangers
from lost_update_lab.servers.redis.commands import for_ever, shown
from lost_update_lab.servers.redis.memory import Answers, KnownRedis, name_of
from lost_update_lab.servers.redis.replica import Replica
from lost_update_lab.servers.redis.scripts import virtual
from lost_update_lab.servers.redis.wire import address, kinds, lease, readable

_perf = time.perf_counter


class RedisServer(Plain):
    """`url`: a server of the explorer's own; its contents are dropped by FLUSHALL before each run."""

    def __init__(self, url: str, name: str = "redis") -> None:
        self.name = name
        self.admin = redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), protocol=2)
        self._connection: Any = self.admin.connection_pool.get_connection()
        self.address = address(self._connection)
        self._strangers = Strangers(self.ask, name, self.address)
        texts = {name: files(__package__).joinpath(name) for name in ("contents.lua", "pin.lua")}
        self._scripts = {name: self.ask("SCRIPT", "LOAD", text.read_text()) for name, text in texts.items()}
        self.reading, self.blocking = kinds(self.ask("COMMAND"))
        self.answers = Answers(self.reading, self.blocking)
        self._leases: dict[str, int] = {}
        self._expire_at: dict[str, bytes] = {}
        self._seen: dict[int, tuple[list[Any], dict[str, int], bytes]] = {}
        self.version, self._looked, self._lasting = 0, -1, True
        self._rows: list[Any] = []
        self._contents = b""
        #: the leases that came, or were renewed, since the look before; None: what an earlier run has seen
        self.granted: set[str] | None = None
        self._now, self._pinned, self._ask = 0, (0, 0.0), True
        self.just_pinned = False  # for the command that is about to be sent
        self.ahead = 0  # how far this server's clock was moved
        self._stepped: float | None = None  # when the first step after the last look began
        self.changed = True
        self.replica = Replica(self.ask)
        self.fails_over, self.learns = True, False
        #: commands that only a replica, or a disk, can answer were seen
        self.confirming: set[str] = set()

    def ask(self, *command: Any) -> Any:
        """One round trip beside the gates."""
        with beside():
            self._connection.send_command(*command, check_health=False)
            return self._connection.read_response()

    def begin(self, known: int = -1, seen: Seen | None = None) -> None:
        self._leases, self._expire_at = {}, {}
        self._seen = {version: held for version, held in self._seen.items() if version <= known}
        self._seen |= {each.version: self.answers.look(each) for each in (seen.all() if seen else ())}
        self.version, self._looked, self._lasting = 0, -1, True
        self._now, self._ask, self.changed, self.ahead, self._stepped = 0, True, False, 0, None
        self.replica.begin()

    def known(self) -> KnownRedis:
        """The same as it is known, as it is now."""
        return KnownRedis(self.name, self.answers, self.contents(), self.leases())

    def touched(self) -> None:
        self.version, self.changed = self.version + 1, True

    def before_step(self, op: Op) -> None:
        self._ask = True
        if self.lags and not op.reads:
            self.replica.lost.append(op.text)
        self.leases()
        if self._stepped is None:
            self._stepped = _perf()
        new = not self._lasting and any(self.version + ahead not in self._seen for ahead in (1, 2, 3))
        late = self._pinned[0] != self._now or _perf() - self._pinned[1] > 0.02 or "TTL" in op.text
        self.just_pinned = False
        if new or late:
            self.pin()

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
        """Once for each version; what an earlier run has seen there is taken from memory."""
        if self._looked == self.version:
            return
        self._looked = self.version
        if self.version in self._seen:
            self._rows, leases, self._contents = self._seen[self.version]
            self._expire_at = {
                k: at for k, at in self._expire_at.items() if self._leases.get(k) == leases.get(k)
            }
            self._leases, self._lasting, self.granted = dict(leases), False, None
            return
        rows = self.ask("EVALSHA", self._scripts["contents.lua"], 0)
        passed = 0 if self._stepped is None else int((_perf() - self._stepped) * 1000) + 1
        self._stepped = None
        leases, expire_at, self.granted = {}, {}, set()
        for row in rows:
            key, left, at = name_of(row[0]), row[3], row[4]
            if left >= 0:
                same = key in self._leases and self._expire_at.get(key) == at
                leases[key] = self._leases[key] if same else self._now + lease(left, passed) * 1000
                expire_at[key] = at
                self.granted |= set() if same else {key}
        self._leases, self._expire_at = leases, expire_at
        self._rows = rows
        there = [row[:3] for row in rows if row[3] != -2]
        self._contents = repr(there).encode()
        self.answers.rows(self._contents, there)
        self._seen[self.version] = rows, dict(leases), self._contents

    def pin(self) -> None:
        """Write the leases' virtual time to the server, a millisecond less: so one that is granted anew shows."""
        if not self._leases:
            return
        left = {key: (end - self._now) // 1000 for key, end in self._leases.items()}
        wanted = [word for key, ms in left.items() for word in (key, max(ms - 1, 1) if ms > 0 else ms)]
        times = self.ask("EVALSHA", self._scripts["pin.lua"], 0, *wanted)
        self._expire_at = dict(zip(self._leases, times, strict=True))
        self._pinned, self._lasting, self.just_pinned = (self._now, _perf()), True, True

    def clocked(self, words: list[bytes], raw: bytes, now: int) -> bytes:
        """A command as it is to be sent: its time-out, and what a script in it asks of this server's clock, are
        virtual."""
        left = {key: (end - self._now) // 1000 for key, end in self._leases.items()}
        return virtual(words, for_ever(words, raw), now + self.ahead, left)

    def advance(self, now: int) -> list[str]:
        self._now = now
        gone = [key for key, end in self.leases().items() if end <= now]
        if gone:
            self.pin()
            self.touched()
            self._ask = True
        return gone

    def watch(self) -> None:
        self._strangers.watch()

    def around(self) -> str:
        return self._strangers.around()

    # -- sessions -----------------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """When this returns, the server has sent whatever earlier commands made it send to anybody."""
        self.ask("PING")

    def freed(self, waiting: Sequence[Task]) -> list[Task]:
        if not self._ask:
            return []
        self._ask = False
        self.barrier()
        return [task for task in waiting if readable(task.session)]

    def unblock(self, client: int) -> None:
        """The time-out of a blocking command has come."""
        self.ask("CLIENT", "UNBLOCK", client, "TIMEOUT")
        self._ask = True

    def end_sessions(self, sessions: Sequence[Any], cut: bool = False) -> None:
        """The server forgets their places in queues, and their subscriptions. One that has neither is ended only if its
        client shall notice (`cut`): to connect again costs more than a schedule."""
        for gated in _gates(sessions):
            if gated.number > 0 and (cut or gated.op or gated.mode or gated.listens):
                with suppress(redis.ResponseError):
                    self.ask("CLIENT", "KILL", "ID", gated.number)
                gated.number = -1
        self._ask = True

    def undisturbed(self, op: Op, own: Sequence[Any], others: Sequence[Any]) -> bool:
        """What a WATCH has seen, and who listens, is no part of the contents."""
        return op.reads or not any(gate.mode for gate in _gates((*own, *others)))

    def holds(self, sessions: Sequence[Any]) -> bool:
        return any(gate.mode == b"SUBSCRIBE" or gate.listens for gate in _gates(sessions))

    # -- the replica ----------------------------------------------------------------------------------------------

    @property
    def lags(self) -> bool:
        return self.replica.lags

    def lag(self) -> None:
        keys = [row[0] for row in self.ask("EVALSHA", self._scripts["contents.lua"], 0)]
        self.replica.lag(keys, self.leases(), self.contents())

    def fail_over(self) -> str:
        self._leases, self._contents = self.replica.take_over(self._now)
        self.changed = self._ask = True
        self.pin()
        self.touched()
        return ", ".join(self.replica.lost) or "nothing"

    def jump(self, ahead: int) -> str:
        gone = [key for key, end in self.leases().items() if end <= self._now + ahead]
        for key in self._leases:
            self._leases[key] -= ahead
        self.ahead += ahead
        self.pin()
        self.touched()
        self._ask = True
        return ", ".join(gone) or "nothing"

    def hidden(self) -> bytes:
        return self.replica.hidden(self._now)

    def close(self) -> None:
        self._connection.disconnect()
        self.admin.close()


def _gates(sessions: Sequence[Any]) -> list[Any]:
    """What the gates know of these connections (redis/connections.py)."""
    return [found for connection in sessions if (found := getattr(connection, "explorer", None))]
