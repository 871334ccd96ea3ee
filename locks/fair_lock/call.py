"""Commands packed once, so that sending one is to append a word: the token, which is the last of each."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

from locks.server import LuaScript


def packed(*words: bytes) -> bytes:
    """Return `words` as they stand in a command of the Redis protocol, without the count before them."""
    return b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def unpacked(word: bytes) -> bytes:
    return word[word.index(b"\n") + 1 : -2]


class Call:
    """A command packed once but for its last word, the token. Here: a plain command."""

    def __init__(self, *words: bytes) -> None:
        self.packed = b"*%d\r\n" % (len(words) + 1) + packed(*words)


class ScriptCall(Call):
    """A script by its hash, with its keys and all arguments but the last."""

    def __init__(self, script: LuaScript, keys: list[bytes], *arguments: bytes) -> None:
        self._script = script
        self._words = (b"%d" % len(keys), *keys, *arguments)
        super().__init__(b"EVALSHA", script.sha.encode(), *self._words)

    @cached_property
    def with_text(self) -> bytes:
        """For a server that does not know the script (any more)."""
        return Call(b"EVAL", self._script.text.encode(), *self._words).packed


class Questions(Protocol):
    """What a lock asks: how its tokens are packed (`%` of a wire's channel and count), how long they are."""

    word: bytes
    length: int
