"""A Redis or Valkey after a setup: its keys as DUMP returns them, with the time that they have left."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lost_update_lab.model.coded_lease import coded

#: what PTTL returns for a key without a lease, and for none
NO_LEASE, GONE = -1, -2
#: type of a value → the command that reads it, and whether what it returns has an order of its own
_READ: dict[str, tuple[tuple[Any, ...], bool]] = {
    "string": (("GET",), True),
    "list": (("LRANGE", 0, -1), True),
    "set": (("SMEMBERS",), False),
    "zset": (("ZRANGE", 0, -1, "WITHSCORES"), True),
    "hash": (("HGETALL",), True),
}


class RedisSnapshot:
    """The database of `url` as it is now. A schedule's changes are undone in one round trip.

    `virtual`: a restored lease is one of a search, which the server's own clock never ends. Otherwise the server ends
    it, after the time that it has left now.
    """

    def __init__(self, url: str, *, virtual: bool = True) -> None:
        self.client: Any = redis.Redis.from_url(
            url, retry=Retry(NoBackoff(), 0), protocol=2, single_connection_client=True
        )
        self._connection = cast(Any, self.client.connection)
        commands: list[tuple[Any, ...]] = [("FLUSHDB",)]
        #: key → the milliseconds that it has left; -1: no end
        self.left: dict[bytes, int] = {}
        self._values: list[bytes] = []
        for key in sorted(self._ask("KEYS", "*")):
            value, left = self._ask("DUMP", key), self._ask("PTTL", key)
            if value is not None and left != GONE:
                self.left[key] = left
                self._values.append(value)
                commands.append(("RESTORE", key, _lease(left, virtual), value))
        self._packed: Any = self._connection.pack_commands(commands)
        self._count = len(commands)

    def restore(self) -> None:
        self._connection.send_packed_command(self._packed, check_health=False)
        for _ in range(self._count):
            self._connection.read_response()

    def writes(self) -> dict[str, int]:
        """How often each command that writes was called, in scripts too. Empty: an old server does not tell."""
        with suppress(redis.ResponseError):
            names = self.client.execute_command("COMMAND LIST", "FILTERBY", "ACLCAT", "write")
            found = self.client.info("commandstats")
            return {
                name: found[f"cmdstat_{name}"]["calls"]
                for name in sorted(map(bytes.decode, names))
                if f"cmdstat_{name}" in found
            }
        return {}

    def values(self) -> tuple[dict[str, str], dict[str, str]]:
        """The keys that will stay, and those whose lease will end, each with its value as a text."""
        lasting: dict[str, str] = {}
        leased: dict[str, str] = {}
        for key in sorted(self._ask("KEYS", "*")):
            found = lasting if self._ask("PTTL", key) == NO_LEASE else leased
            found[key.decode(errors="backslashreplace")] = self._value(key)
        return lasting, leased

    def _value(self, key: bytes) -> str:
        """A set has no order."""
        kind = self._ask("TYPE", key).decode()
        if kind == "stream":
            return f"{kind} {self._stream(key)!r}"
        read, ordered = _READ.get(kind, (("DUMP",), True))
        found = self._ask(read[0], key, *read[1:])
        if kind == "hash":
            found = sorted(zip(found[::2], found[1::2], strict=True))
        return f"{kind} {found if ordered else sorted(found)!r}"

    def _stream(self, key: bytes) -> list[Any]:
        """Its entries, and its groups: how far each has read, its consumers, and what is pending for which of them,
        delivered how often. DUMP would tell since when, too, by the server's own clock."""
        found: list[Any] = self._ask("XRANGE", key, "-", "+")
        for group in map(_fields, self._ask("XINFO", "GROUPS", key)):
            name = group[b"name"]
            who = sorted(_fields(each)[b"name"] for each in self._ask("XINFO", "CONSUMERS", key, name))
            waiting = self._ask("XPENDING", key, name, "-", "+", 10_000) if group[b"pending"] else []
            pending = [(message, consumer, times) for message, consumer, _, times in waiting]
            found.append((b"group", name, group[b"last-delivered-id"], who, pending))
        return found

    def texts(self) -> list[str]:
        """The keys that existed after the setup, and their values as DUMP returns them."""
        return [each.decode("latin-1") for each in (*self.left, *self._values)]

    def _ask(self, *command: Any) -> Any:
        self._connection.send_command(*command, check_health=False)
        return self._connection.read_response()

    def close(self) -> None:
        self.client.close()
        self.client.connection_pool.disconnect()


def _fields(reply: list[Any]) -> dict[bytes, Any]:
    return dict(zip(reply[::2], reply[1::2], strict=True))


def _lease(left: int, virtual: bool) -> int:
    """What RESTORE is told of a lease that has `left` ms left; 0: no lease. A virtual one is of whole seconds, so that
    each schedule begins with the same, however long the setup took."""
    if left == NO_LEASE:
        return 0
    return coded(-(-max(left, 1) // 1000) * 1000) if virtual else max(left, 1)
