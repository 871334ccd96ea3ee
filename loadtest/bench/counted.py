"""Counting what clients send, at redis-py's connection: pipelines and fast locks go around its client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redis.connection import AbstractConnection


class Count:
    def __init__(self) -> None:
        self.commands = 0


@contextmanager
def counted() -> Iterator[Count]:
    """Commands that this process sends to Redis servers inside the block."""
    count, usual = Count(), AbstractConnection.send_packed_command

    def send(self: Any, command: Any, *arguments: Any, **options: Any) -> Any:
        parts = [command] if isinstance(command, (str, bytes)) else list(command)
        data = b"".join(part.encode() if isinstance(part, str) else bytes(part) for part in parts)
        count.commands += commands_in(data)
        return usual(self, parts, *arguments, **options)

    AbstractConnection.send_packed_command = send  # type: ignore[method-assign]
    try:
        yield count
    finally:
        AbstractConnection.send_packed_command = usual  # type: ignore[method-assign]


def commands_in(data: bytes) -> int:
    """Return how many commands stand in `data`, as the Redis protocol packs them."""
    found = at = 0
    while at < len(data):
        line = data.index(b"\r\n", at)
        words = int(data[at + 1 : line])
        at = line + 2
        for _ in range(words):
            line = data.index(b"\r\n", at)
            at = line + 2 + int(data[at + 1 : line]) + 2
        found += 1
    return found
