"""The user's modules that a run can have changed: those whose code it has executed, and those that these name.

A project has hundreds of modules, and an operation executes the code of a few. With the 600 modules of this project's
tests, to look at all of them took half of a small exploration's own CPU time (0.16 s, and 0.08 without).
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, ModuleType
from typing import ClassVar

from lost_update_lab.runs.modules import named_in, own_modules, with_named


class Executed:
    """The code that the workers' threads execute while this is noted, and the module of each."""

    now: ClassVar[Executed | None] = None

    def __init__(self) -> None:
        self.codes: dict[CodeType, str] = {}
        #: a debugger, or coverage, traces the calls, so they cannot be noted
        self.unknown = False

    @contextmanager
    def noted(self) -> Iterator[None]:
        Executed.now = self
        try:
            yield
        finally:
            Executed.now = None

    def note(self, frame: FrameType, event: str, arg: object) -> None:
        self.codes[frame.f_code] = str(frame.f_globals.get("__name__", ""))

    def modules(self) -> list[ModuleType]:
        """Those that it can have changed. (All of the user's, if that is not known.)"""
        every = own_modules("")
        if self.unknown:
            return every
        own = {each.__name__: each for each in every}
        found = [name for name in dict.fromkeys(self.codes.values()) if name in own]
        words = _words([code for code, name in self.codes.items() if name in own])
        bases = {base for name in found for base in (*_above(name), *named_in(own[name]))}
        meant = {*found, *(name for name in own if _is_meant(name, words, bases))}
        others = {name: each for name, each in own.items() if name not in meant}
        known = {each.__name__ for each in with_named([own[name] for name in meant], others)}
        return [each for each in every if each.__name__ in known]


@contextmanager
def noting() -> Iterator[None]:
    """In this thread of a worker."""
    executed = Executed.now
    if not executed:
        yield
        return
    if sys.gettrace():
        executed.unknown = True
        yield
        return
    sys.settrace(executed.note)
    try:
        yield
    finally:
        sys.settrace(None)


def _words(codes: Collection[CodeType]) -> set[str]:
    """What may name a module in it: the names of imports and attributes; "shop.cache.LEFT", as a patch has it."""
    words = {name for code in codes for name in code.co_names}
    for code in codes:
        for text in code.co_consts:
            if isinstance(text, str) and "." in text:
                words |= {text, *_above(text)}
    return words


def _is_meant(name: str, words: Collection[str], bases: Collection[str]) -> bool:
    """`import shop.cache`, `from shop import cache`, `shop.cache.LEFT = 1` where `shop` is a global."""
    above, _, last = name.rpartition(".")
    return name in words or (last in words and (above in words or above in bases))


def _above(name: str) -> list[str]:
    """a.b.c → a, a.b"""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]
