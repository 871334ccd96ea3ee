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

from loadtest.explorer.gates.here import beside
from loadtest.explorer.gates.redis_commands import for_ever, shown
from loadtest.explorer.gates.redis_scripts import virtual
from loadtest.explorer.ops import Op
from loadtest.explorer.servers.redis_replica import Replica
from loadtest.explorer.servers.redis_strangers import Strangers
from loadtest.explorer.servers.redis_wire import address, lease, readable
from loadtest.explorer.tasks import Task

_perf = time.perf_counter


def _script(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


class RedisServer:
    """`url`: a server of the explorer's own; its contents are dropped by FLUSHALL before each run."""

    def __init__(self, url: str, name: str = "redis") -> None:
        self.name = name
        self.admin = redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), protocol=2)
        self._connection: Any = self.admin.connection_pool.get_connection()
        self.address = address(self._connection)
        self._strangers = Strangers(self.ask, name, self.address)
        self._scripts = {n: self.ask("SCRIPT", "LOAD", _script(n)) for n in ("contents.lua", "pin.lua")}
        self.reading, self.blocking = self._kinds_of_commands()
        self._leases: dict[str, int] = {}
        self._expire_at: dict[str, bytes] = {}
        self._seen: dict[int, tuple[list[Any], dict[str, int], bytes]] = {}
        self.version, self._looked, self._lasting = 0, -1, True
        self._rows: list[Any] = []
        self._contents = b""
        self._now, self._pinned, self._ask = 0, (0, 0.0), True
        self._stepped: float | None = None  # when the first step after the last look began
        self.ahead = 0  # how far this server's clock was moved
        self.changed = True
        self.replica = Replica(self.ask)
        self.fails_over = True
        #: commands that only a replica, or a disk, can answer were seen
        self.confirming: set[str] = set()

    def ask(self, *command: Any) -> Any:
        """One round trip beside the gates."""
        with beside():
            self._connection.send_command(*command, check_health=False)
            return self._connection.read_response()

    def _kinds_of_commands(self) -> tuple[set[bytes], set[bytes]]:
        """The server says itself which of its commands only read, and which may block."""
        rows = self.ask("COMMAND")
        reading = {row[0].upper() for row in rows if b"readonly" in row[2]} | {b"PING", b"TIME"}
        return reading, {row[0].upper() for row in rows if b"blocking" in row[2]}

    def begin(self, known: int = -1) -> None:
        self._leases, self._expire_at = {}, {}
        self._seen = {version: seen for version, seen in self._seen.items() if version <= known}
        self.version, self._looked, self._lasting = 0, -1, True
        self._now, self._ask, self.changed, self.ahead, self._stepped = 0, True, False, 0, None
        self.replica.begin()

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
        if self._leases and (new or late):
            self._pin()

    def contents(self) -> bytes:
        self._look()
        return self._contents

    def listing(self) -> list[tuple[str, str, str, int | None]]:
        leases = self.leases()
        named = [(row[0].decode(errors="backslashreplace"), row) for row in self._rows if row[3] != -2]
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
            self._leases, self._lasting = dict(leases), False
            return
        rows = self.ask("EVALSHA", self._scripts["contents.lua"], 0)
        passed = 0 if self._stepped is None else int((_perf() - self._stepped) * 1000) + 1
        self._stepped = None
        leases, expire_at = {}, {}
        for row in rows:
            key, left, at = row[0].decode(errors="backslashreplace"), row[3], row[4]
            if left >= 0:
                same = key in self._leases and self._expire_at.get(key) == at
                leases[key] = self._leases[key] if same else self._now + lease(left, passed) * 1000
                expire_at[key] = at
        self._leases, self._expire_at = leases, expire_at
        self._rows = rows
        self._contents = repr([row[:3] for row in rows if row[3] != -2]).encode()
        self._seen[self.version] = rows, dict(leases), self._contents

    def _pin(self) -> None:
        """Write the leases' virtual time to the server."""
        wanted = [word for key, end in self._leases.items() for word in (key, (end - self._now) // 1000)]
        times = self.ask("EVALSHA", self._scripts["pin.lua"], 0, *wanted)
        self._expire_at = dict(zip(self._leases, times, strict=True))
        self._pinned, self._lasting = (self._now, _perf()), True

    def clocked(self, words: list[bytes], raw: bytes, now: int) -> bytes:
        """A command as it is to be sent: its time-out, and what a script in it asks of this server's clock, are
        virtual."""
        left = {key: (end - self._now) // 1000 for key, end in self._leases.items()}
        return virtual(words, for_ever(words, raw), now + self.ahead, left)

    def advance(self, now: int) -> list[str]:
        self._now = now
        gone = [key for key, end in self.leases().items() if end <= now]
        if gone:
            self._pin()
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

    def deadlocked(self, waiting: Sequence[Task]) -> list[Task]:
        return []

    def abort(self, task: Task) -> None:
        raise NotImplementedError

    def unblock(self, client: int) -> None:
        """The time-out of a blocking command has come."""
        self.ask("CLIENT", "UNBLOCK", client, "TIMEOUT")
        self._ask = True

    def end_sessions(self, sessions: Sequence[Any], cut: bool = False) -> None:
        """The server forgets at once their place in a queue, and their subscriptions. One that has neither is
        ended only if its client shall notice (`cut`): to connect again costs more than a schedule."""
        for connection in sessions:
            gated = getattr(connection, "explorer", None)
            if gated and gated.number > 0 and (cut or gated.op or gated.mode or gated.listens):
                with suppress(redis.ResponseError):
                    self.ask("CLIENT", "KILL", "ID", gated.number)
                gated.number = -1
        self._ask = True

    def undisturbed(self, op: Op, own: Sequence[Any], others: Sequence[Any]) -> bool:
        """What a WATCH has seen, and who listens, is no part of the contents."""
        return op.reads or not any(getattr(s, "explorer", None) and s.explorer.mode for s in (*own, *others))

    def holds(self, sessions: Sequence[Any]) -> bool:
        gates = [s.explorer for s in sessions if getattr(s, "explorer", None)]
        return any(gate.mode == b"SUBSCRIBE" or gate.listens for gate in gates)

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
        if self._leases:
            self._pin()
        self.touched()
        return ", ".join(self.replica.lost) or "nothing"

    def jump(self, ahead: int) -> str:
        gone = [key for key, end in self.leases().items() if end <= self._now + ahead]
        for key in self._leases:
            self._leases[key] -= ahead
        self.ahead += ahead
        self._pin()
        self.touched()
        self._ask = True
        return ", ".join(gone) or "nothing"

    def hidden(self) -> bytes:
        return self.replica.hidden(self._now)

    def close(self) -> None:
        self._connection.disconnect()
        self.admin.close()
