"""The keys of a Redis command, and what it does to each: the server itself says (COMMAND GETKEYSANDFLAGS)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import Connection, UnixDomainSocketConnection
from redis.retry import Retry

READS, WRITES, AT_ONCE = "reads", "writes", "at once"
#: a key, and what the command does to it
Key = tuple[str, str]
#: flags of a key that is changed
_CHANGED = frozenset({"RW", "OW", "RM"})
#: of a connection: where its server is, and who may ask it
_PLACES = ("path", "host", "port", "username", "password")


class Keys:
    """Asks the server of each connection, through a connection beside it."""

    def __init__(self) -> None:
        self._beside: dict[tuple[str, ...], Any] = {}
        self._known: dict[tuple[str, ...], tuple[Key, ...]] = {}
        #: a question is under way, and no command of a test
        self.asking = False

    def of(self, connection: Any, words: Sequence[str]) -> tuple[Key, ...]:
        """Those of a command that is about to be sent on this connection."""
        if tuple(words) not in self._known:
            self.asking = True
            try:
                self._known[tuple(words)] = tuple(self._asked(self._server_of(connection), words))
            except (
                redis.ConnectionError,
                OSError,
                AttributeError,
            ):  # by TLS, or as another user: nobody to ask
                self._known[tuple(words)] = ((words[1], WRITES),) if len(words) > 1 else ()
            finally:
                self.asking = False
        return self._known[tuple(words)]

    def _server_of(self, connection: Any) -> Any:
        given = {name: getattr(connection, name, None) for name in _PLACES}
        where: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        place = tuple(map(str, where.values()))
        if place not in self._beside:
            kind: Any = UnixDomainSocketConnection if where.get("path") else Connection
            made = kind(**where, retry=Retry(NoBackoff(), 0), decode_responses=True, protocol=2)
            made.connect()
            self._beside[place] = made
        return self._beside[place]

    def _asked(self, server: Any, words: Sequence[str]) -> Iterator[Key]:
        try:
            found = _ask(server, "COMMAND", "GETKEYSANDFLAGS", *words)
        except redis.ResponseError:  # it has none
            return
        changes = any(_CHANGED & set(flags) for _, flags in found)
        # reading from a group changes what it has read
        writes = not changes and bool(found) and "write" in _ask(server, "COMMAND", "INFO", words[0])[0][2]
        taken_if_free = "NX" in [word.upper() for word in words[3:]] or words[0].upper() == "SETNX"
        for key, flags in found:
            if not writes and not _CHANGED & set(flags):
                yield key, READS
            elif writes or taken_if_free or ("RW" in flags and {"access", "insert"} & set(flags)):
                yield key, AT_ONCE
            else:
                yield key, WRITES

    def close(self) -> None:
        for each in self._beside.values():
            each.disconnect()


def _ask(server: Any, *words: str) -> Any:
    server.send_command(*words, check_health=False)
    return server.read_response()
