"""Redis's commands on the wire: how they are split, how long one may block, and replies as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

_TIME_LAST = {b"BLPOP", b"BRPOP", b"BLMOVE", b"BRPOPLPUSH", b"BZPOPMIN", b"BZPOPMAX"}
#: commands that wait for a confirmation, with the place of their time-out
WAIT_COMMANDS = {b"WAIT": 2, b"WAITAOF": 3}


#: sent before a command, which the server then does not answer
UNANSWERED = b"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\n"


def subscribes(words: Sequence[bytes]) -> bool:
    """Does it begin, or end, a subscription? Its reply comes as a message."""
    return words[0].upper().endswith(b"SUBSCRIBE")


def split(command: Any) -> Iterator[tuple[list[bytes], bytes]]:
    """Yield (words, bytes) of each command in what a client is about to send. If no reply is wanted, the bytes begin
    with UNANSWERED: the two are one step."""
    if isinstance(command, bytes | str):
        command = [command]
    data = b"".join(part.encode() if isinstance(part, str) else bytes(part) for part in command)
    at = begin = 0
    while at < len(data):
        words = []
        line = data.index(b"\r\n", at)
        count, at = int(data[at + 1 : line]), line + 2
        for _ in range(count):
            line = data.index(b"\r\n", at)
            size, at = int(data[at + 1 : line]), line + 2
            words.append(data[at : at + size])
            at += size + 2
        if data[begin:at] != UNANSWERED:
            yield words, data[begin:at]
            begin = at


def time_out(name: bytes, words: list[bytes]) -> float | None:
    """Seconds after which a blocking command gives up; None: never, or it does not block."""
    value = 0.0
    if name in _TIME_LAST:
        value = float(words[-1])
    elif name in (b"BLMPOP", b"BZMPOP"):
        value = float(words[1])
    elif name in WAIT_COMMANDS:
        value = float(words[WAIT_COMMANDS[name]]) / 1000
    elif name in (b"XREAD", b"XREADGROUP"):
        upper = [word.upper() for word in words]
        value = float(words[upper.index(b"BLOCK") + 1]) / 1000 if b"BLOCK" in upper else 0
    return value or None


def waits(name: bytes, words: Sequence[bytes]) -> bool:
    """May this command, of a kind that can block, do so? Reading a stream blocks only where it says BLOCK."""
    return name not in (b"XREAD", b"XREADGROUP") or b"BLOCK" in [word.upper() for word in words]


def for_ever(words: list[bytes], raw: bytes) -> bytes:
    """The same command without its time-out, in place of `raw`. The time-out is virtual. The server's own would end
    the command after that much real time, which is a matter of luck."""
    name = words[0].upper()
    if time_out(name, words) is None:
        return raw
    at = len(words) - 1 if name in _TIME_LAST else WAIT_COMMANDS.get(name, 1)
    if name in (b"XREAD", b"XREADGROUP"):
        at = [word.upper() for word in words].index(b"BLOCK") + 1
    return packed([*words[:at], b"0", *words[at + 1 :]])


def packed(words: Sequence[bytes]) -> bytes:
    """A command as it is sent on the wire."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def shown(reply: Any) -> str:
    """A reply as redis-cli would show it."""
    if reply is None:
        return "nil"
    if isinstance(reply, bytes):
        return reply.decode(errors="backslashreplace")
    if isinstance(reply, list):
        return "[" + ", ".join(shown(each) for each in reply) + "]"
    return str(reply)
