"""What a fair lock asks its server, packed in advance. Sending a question appends one word: the holder's token."""

from __future__ import annotations

from functools import cached_property

from locks.server import LuaScript

_QUEUE = "queue.lua"
ACQUIRE = LuaScript("take.lua", _QUEUE, "acquire.lua", package=__package__)
LEAVE = LuaScript(_QUEUE, "leave.lua", package=__package__)
RELEASE = LuaScript("hand.lua", _QUEUE, "release.lua", package=__package__)
EXTEND = LuaScript(_QUEUE, "extend.lua", package=__package__)


def packed(*words: bytes) -> bytes:
    """Return `words` as the Redis protocol encodes them in a command, without the count in front."""
    return b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def unpacked(word: bytes) -> bytes:
    return word[word.index(b"\n") + 1 : -2]


#: sent in front of a question, in the same write: the server then does not reply to it
UNANSWERED = b"*3\r\n" + packed(b"CLIENT", b"REPLY", b"SKIP")

#: the last word of `Questions.last_number`, which needs no token
FENCE_NUMBER = packed(b"number")


class Question:
    """A command, packed except for its last word. This class is for a plain command."""

    def __init__(self, *words: bytes) -> None:
        self.packed = b"*%d\r\n" % (len(words) + 1) + packed(*words)


class ScriptQuestion(Question):
    """A script called by its hash, with its keys and all arguments except the last."""

    def __init__(self, script: LuaScript, keys: list[bytes], *arguments: bytes) -> None:
        self._script = script
        self._words = (b"%d" % len(keys), *keys, *arguments)
        super().__init__(b"EVALSHA", script.sha.encode(), *self._words)

    @cached_property
    def with_text(self) -> bytes:
        """The same call for a server that does not know the script, or forgot it."""
        return Question(b"EVAL", self._script.text.encode(), *self._words).packed


class Questions:
    """All questions about one lock, with its keys and its lease in milliseconds."""

    def __init__(self, name: str, lease: int) -> None:
        parts = ("%s", "{%s}:fence", "{%s}:queue", "{%s}:heard")
        self._keys = [(part % name).encode() for part in parts]
        self._px = b"%d" % lease
        length = len(b"0123456789abcdef:0123456789abcde:") + len(self._px)
        #: a packed token, to be filled in with `%`: a wire's channel, which nobody can guess, and its count
        self.word = b"$%d\r\n%%b:%%015d:%d\r\n" % (length, lease)
        self.acquire = ScriptQuestion(ACQUIRE, self._keys, b"first", self._px)
        #: releases the lock if nobody ever waited for it (a waiter appends a '+' to the token, so DELIFEQ fails)
        self.delete = Question(b"DELIFEQ", self._keys[0])
        #: did this process's last release hand the lock to a waiter? Then it is probably held now
        self.busy = False

    @cached_property
    def acquire_quietly(self) -> bytes:
        """The same question without a reply: the grant comes as a message."""
        return UNANSWERED + ScriptQuestion(ACQUIRE, self._keys, b"quiet", self._px).packed

    @cached_property
    def ask_again(self) -> Question:
        return ScriptQuestion(ACQUIRE, self._keys, b"again", self._px)

    @cached_property
    def try_once(self) -> Question:
        return ScriptQuestion(ACQUIRE, self._keys, b"try", self._px)

    @cached_property
    def release(self) -> Question:
        return ScriptQuestion(RELEASE, self._keys)

    @cached_property
    def leave(self) -> Question:
        return ScriptQuestion(LEAVE, self._keys, self._px)

    @cached_property
    def last_number(self) -> Question:
        return Question(b"HGET", self._keys[1])

    @cached_property
    def extend(self) -> Question:
        return ScriptQuestion(EXTEND, self._keys, self._px)
