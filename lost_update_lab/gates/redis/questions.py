"""What an invariant asks of Redis: no step, and answered in virtual time. The lease itself lasts for years there."""

from __future__ import annotations

from typing import Any

from lost_update_lab.adapters import redis_py
from lost_update_lab.gates.invariant_call import asks_a_server, is_asking
from lost_update_lab.runs.place import Active
from lost_update_lab.servers.redis.commands import split
from lost_update_lab.servers.redis.server import RedisServer
from lost_update_lab.servers.redis.wire import TELLS, address, left


def note(connection: Any, command: Any) -> None:
    """This is about to be sent."""
    if asks_a_server():
        asked = vars(connection).setdefault("explorer_questions", [])
        asked += [words for words, _ in split(command)]


def read(connection: Any, *args: Any, **keywords: Any) -> Any:
    """The next reply."""
    asked = vars(connection).get("explorer_questions")
    if not is_asking() or not asked:
        return redis_py.read(connection, *args, **keywords)
    words = asked.pop(0)
    queued = vars(connection).setdefault("explorer_queued", [])
    reply = redis_py.read(connection, *args, **keywords)
    if reply in (b"QUEUED", "QUEUED"):
        queued.append(words)
    elif words[0].upper() == b"EXEC" and isinstance(reply, list):
        reply = [_told(connection, *each) for each in zip(queued, reply, strict=False)]
        queued.clear()
    return _told(connection, words, reply)


def _told(connection: Any, words: list[bytes], reply: Any) -> Any:
    servers = [each for each in Active.servers.values() if isinstance(each, RedisServer)]
    server = next((each for each in servers if each.address == address(connection)), None)
    if server is None or words[0].upper() not in TELLS or not isinstance(reply, int):
        return reply
    server.told_how_long = True
    command = b" ".join([words[0].upper(), *words[1:]]).decode(errors="backslashreplace")
    return left(command, reply, server.leases(), server.now)
