"""What a worker returned, as a text by which states are told apart, and in a form in which two can be compared.

Both leave out fresh times of day. A random key stays: a worker draws the same ones in each schedule.

An object of the user's is compared by its class: it may show what was read long before the operation ended, and
nobody uses it. An invariant may use it, so states are told apart by its public attributes, too.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping
from datetime import date, datetime
from decimal import Decimal
from types import ModuleType
from typing import Any
from uuid import UUID

from lost_update_lab.snapshot.exact import number, read
from lost_update_lab.under_test.fresh import timeless

#: how deep the attributes of objects are followed, and how many values are shown at most
DEPTH, MOST = 4, 2000


class ResultText(str):
    """A worker's result as a text; `value`: the result itself; `plain`: what is compared of it."""

    value: Any = None
    plain: Any = None

    @classmethod
    def of(cls, value: Any, known: Collection[str] | None = ()) -> ResultText:
        """`known`: the constants (fresh.py); None: all times are."""
        made = cls(json.dumps(_Reader(known).read(value, DEPTH), default=str, ensure_ascii=False))
        made.value, made.plain = value, _Reader(known).read(value)
        return made


class _Reader:
    def __init__(self, known: Collection[str] | None) -> None:
        self.known, self.left = known, MOST
        self._open = set[int]()  # ids of the objects that are being read: they may contain themselves

    def read(self, value: Any, depth: int = 0) -> Any:
        """A result as JSON knows it. `depth`: how deep the attributes of an object with no text of its own are
        shown."""
        kind = type(value)  # what a lazy object is, is not asked: it would be evaluated
        if value is None or issubclass(kind, bool | int | float):
            return value
        if issubclass(kind, str | datetime | date | UUID):
            return timeless(str(value), self.known)
        if issubclass(kind, bytes | bytearray | memoryview):
            return timeless(repr(bytes(value)), self.known)
        if issubclass(kind, Mapping):
            return {str(key): self.read(each, depth) for key, each in value.items()}
        if issubclass(kind, list | tuple):
            return [self.read(each, depth) for each in value]
        if issubclass(kind, set | frozenset):
            return sorted((self.read(each, depth) for each in value), key=repr)
        if hasattr(kind, "content") and hasattr(value, "status_code") and hasattr(value, "content"):
            return {"status": value.status_code, "body": self._body(value.content)}  # of a web framework
        if issubclass(kind, Decimal):
            return number(value)
        if kind.__module__ in ("fractions", "enum"):
            return str(value)
        return self._object(value, depth)

    def _object(self, value: Any, depth: int) -> Any:
        kind = type(value)
        told, self.left = f"a {kind.__qualname__}", self.left - 1
        if self.left < 0 or id(value) in self._open:
            return told
        self._open.add(id(value))
        try:
            if dataclasses.is_dataclass(kind):
                return {f.name: self.read(getattr(value, f.name), depth) for f in dataclasses.fields(value)}
            shown = {name: self.read(each, depth - 1) for name, each in _public(value)} if depth else {}
        finally:
            self._open.discard(id(value))
        return [told, shown] if shown else told

    def _body(self, content: Any) -> Any:
        text = content.decode(errors="replace") if isinstance(content, bytes) else str(content)
        try:
            return self.read(read(text))
        except ValueError:
            return timeless(text, self.known)


def _public(value: Any) -> list[tuple[str, Any]]:
    """The public attributes of an object that is no class, function or module."""
    if callable(value) or issubclass(type(value), ModuleType):
        return []
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    return [(name, each) for name, each in sorted(own.items()) if not name.startswith("_")]
