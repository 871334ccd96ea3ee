"""Code that the server knows, and that no command of a worker shows: a script that was loaded past the gates (by the
setup, by an invariant, by an exploration before), and functions.

The text of such a script is asked of the server (SCRIPT SHOW), and then it is sent as any other script is. A function
is called as it is, so it sees the server's own clock: one that would ask for it, or that chooses, decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import redis

from lost_update_lab.model.errors import Broken
from lost_update_lab.servers.redis.repeatable import CHANCE
from lost_update_lab.servers.redis.scripts import called, note, script_of

UNREADABLE = (
    "the script {number} was loaded past the gates, and this Redis does not tell its text (SCRIPT SHOW)"
)
IN_THE_OPERATION = "load it in the operation: by register_script(), or by SCRIPT LOAD"
BY_ITS_CLOCK = (
    "the code of the function {name} uses the server's own clock, which no schedule can move ({word})"
)
BY_CHANCE = "the code of the function {name} chooses at random, so no order comes again"
UNNAMED = (
    "the code of the function {name} computes which commands it calls, so nobody can tell what they ask for"
)
AS_A_SCRIPT = (
    "for the trial, send that code as a script (register_script): a script is told virtual times. Functions that need "
    "no clock, no lease and no chance may stay, in a library of their own"
)
_BY_NUMBER, _FUNCTIONS = (b"EVALSHA", b"EVALSHA_RO"), (b"FCALL", b"FCALL_RO")
#: the words, as literals, by which code asks for the time, or for what a lease has left; or gives a lease
_CLOCK = re.compile(
    rb"['\"](TIME|P?TTL|P?EXPIRE(?:AT|TIME)?|P?SETEX|GETEX|[EP]X(?:AT)?|XADD|RESTORE)['\"]", re.IGNORECASE
)


class RedisLibrary:
    """`ask`: one round trip to the server."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self.ask = ask
        self._functions: dict[bytes, bytes] | None = None

    def begin(self) -> None:
        self._functions = None

    def text(self, words: Sequence[bytes]) -> bytes | None:
        """The code that this command calls: of a script, or of the whole library in which a function is."""
        name = words[0].upper()
        if name == b"FUNCTION":  # it may load another one
            self._functions = None
        if name in _FUNCTIONS and len(words) > 1:
            if self._functions is None:
                self._functions = dict(self._listed())
            return self._functions.get(words[1])
        return script_of(words)

    def unseen(self, words: Sequence[bytes]) -> Broken | None:
        """Does the command call code of which the explorer cannot tell what it does? Notes the text of a script that it
        did not know."""
        name, code = words[0].upper(), self.text(words)
        if name in _BY_NUMBER and code is None and len(words) > 1:
            return self._learn(words[1])
        return of_a_function(words[1], code) if name in _FUNCTIONS and code is not None else None

    def _learn(self, number: bytes) -> Broken | None:
        try:
            note(self.ask("SCRIPT", "SHOW", number))
        except redis.exceptions.NoScriptError:
            return None
        except redis.ResponseError:  # Redis, and Valkey before 8
            if self.ask("SCRIPT", "EXISTS", number) == [1]:
                return Broken(UNREADABLE.format(number=number.decode(errors="replace")), IN_THE_OPERATION)
        return None

    def _listed(self) -> Iterator[tuple[bytes, bytes]]:
        """Each function's name, and the code of its library."""
        for row in self.ask("FUNCTION", "LIST", "WITHCODE"):
            library = _fields(row)
            for each in library[b"functions"]:
                yield _fields(each)[b"name"], library[b"library_code"]


def of_a_function(called_by: bytes, code: bytes) -> Broken | None:
    """`called_by`: its name. `code`: of its library."""
    name = called_by.decode(errors="replace")
    if found := _CLOCK.search(code):
        return Broken(BY_ITS_CLOCK.format(name=name, word=found[1].decode().upper()), AS_A_SCRIPT)
    names = called(code)
    if CHANCE.search(code) or b"SPOP" in (names or ()):
        return Broken(BY_CHANCE.format(name=name), AS_A_SCRIPT)
    return Broken(UNNAMED.format(name=name), AS_A_SCRIPT) if names is None else None


def _fields(row: Any) -> dict[bytes, Any]:
    return row if isinstance(row, dict) else dict(zip(row[::2], row[1::2], strict=True))
