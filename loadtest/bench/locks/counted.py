"""Counting what clients send, by the server's word: no client has to be changed for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redis import Redis


class Count:
    commands = 0


@contextmanager
def counted(admin: Redis) -> Iterator[Count]:
    """Afterwards `commands` is what the server was sent inside the block; a script is one command."""
    count = Count()
    with admin.monitor() as monitor:
        _heard_until(monitor, admin, "the count begins")
        yield count
        count.commands = _heard_until(monitor, admin, "the count ends")


def _heard_until(monitor: Any, admin: Redis, mark: str) -> int:
    admin.echo(mark)
    commands = 0
    for heard in monitor.listen():
        if mark in heard["command"]:
            break
        commands += heard["client_type"] != "lua"
    return commands
