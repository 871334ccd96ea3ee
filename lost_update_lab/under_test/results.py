"""What a worker returned, as a text by which states are told apart, and in a form in which two can be compared.

Both leave out fresh times of day. A random key stays: a worker draws the same ones in each schedule.

An object that says nothing about itself (values.py) is compared by its class: it may show what was read long before the
operation ended, and nobody uses it. An invariant may use it, so states are told apart by its public attributes, too.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Set
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from itertools import zip_longest
from math import isfinite
from types import MappingProxyType, ModuleType
from typing import Any
from uuid import UUID

from lost_update_lab.gates.recorded_calls import without_keys
from lost_update_lab.snapshot.exact import number, read
from lost_update_lab.under_test import values
from lost_update_lab.under_test.fresh import comparable, timeless
from lost_update_lab.under_test.values import OwnText

#: how deep the attributes of objects are followed, and how many values are shown at most
DEPTH, MOST = 4, 2000
#: modules whose errors are told apart by their class
_OF_DRIVERS = ("psycopg.", "redis.", "sqlalchemy.", "django.db.", "pymysql.", "aiomysql.", "asyncio.")


class ResultText(str):
    """A worker's result as a text; `value`: the result itself; `plain`: what is compared of it. `by_class`: the classes
    of which nothing else is compared. `calls`: the mocks that the worker has called (recorded_calls.py), and how often
    each: a part of its answer."""

    value: Any = None
    calls: Mapping[str, int] = MappingProxyType({})
    plain: Any = None
    by_class: tuple[type, ...] = ()

    @classmethod
    def of(
        cls,
        value: Any,
        known: Collection[str] | None = (),
        unsteady: Collection[type] = (),
        calls: Mapping[str, int] = MappingProxyType({}),
    ) -> ResultText:
        """`known`: the constants (fresh.py); None: all times are. `unsteady`: classes whose own texts do not count."""
        told = without_keys(calls)
        deep, reader = _Reader(known, unsteady).read(value, DEPTH), _Reader(known, unsteady)
        made = cls(json.dumps([deep, told] if told else deep, default=str, ensure_ascii=False))
        plain = reader.read(value)
        made.value, made.calls, made.plain = value, calls, {"returned": plain, **told} if told else plain
        made.by_class = tuple(reader.by_class)
        return made


def calls_of(result: Any) -> Mapping[str, int]:
    """What a worker with this result has called, as far as that is known."""
    return result.calls if isinstance(result, ResultText) else {}


def raised(error: BaseException, known: Collection[str] | None = (), unsteady: Collection[type] = ()) -> Any:
    """What is compared of an error: its class, arguments and public attributes; of one that a driver or the system
    raises, whose words name processes and addresses, the class. `known`, `unsteady`: as for a result."""
    kind = type(error)
    if issubclass(kind, OSError) or kind in unsteady or f"{kind.__module__}.".startswith(_OF_DRIVERS):
        return kind.__qualname__
    reader = _Reader(known, unsteady)
    own = {name: reader.read(each) for name, each in _public(error) if not name.startswith("explorer_")}
    return [kind.__qualname__, reader.read(error.args), own]


def unsteady(one: Any, other: Any) -> Iterator[type]:
    """The classes whose objects say other things of themselves in two results that should be equal."""
    if isinstance(one, BaseException) and type(one) is type(other):
        told = [comparable(json.dumps(raised(each), default=str)) for each in (one, other)]
        if told[0] != told[1]:
            yield type(one)
    readers = _Reader(()), _Reader(())
    for reader, value in zip(readers, (one, other), strict=True):
        reader.read(value)
    for here, there in zip_longest(*(reader.said for reader in readers)):
        if here and there and here[0] is there[0] and comparable(here[1]) != comparable(there[1]):
            yield here[0]


class _Reader:
    def __init__(self, known: Collection[str] | None, unsteady: Collection[type] = ()) -> None:
        self.known, self.unsteady, self.left = known, unsteady, MOST
        self._open = set[int]()  # ids of the objects that are being read: they may contain themselves
        #: what objects said of themselves; the classes of those that said nothing
        self.said: list[tuple[type, str]] = []
        self.by_class: dict[type, None] = {}

    def read(self, value: Any, depth: int = 0) -> Any:
        """A result as JSON knows it. `depth`: how deep the attributes of an object with no text of its own are
        shown."""
        kind = type(value)  # what a lazy object is, is not asked: it would be evaluated
        if value is None or issubclass(kind, bool | int):
            return value
        if issubclass(kind, float):
            return value if isfinite(value) else repr(value)  # a NaN is not equal to itself
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
        if issubclass(kind, Enum):
            return f"{kind.__qualname__}.{value.name or value.value}"
        return self._object(value, depth)

    def _object(self, value: Any, depth: int) -> Any:
        kind = type(value)
        told, self.left = f"a {kind.__qualname__}", self.left - 1
        if self.left < 0 or id(value) in self._open:
            return told
        self._open.add(id(value))
        try:
            found = self._compared(value, kind, depth)
            hides = depth and (found is None or isinstance(found, OwnText))
            shown = {name: self.read(each, depth - 1) for name, each in _public(value)} if hides else {}
        finally:
            self._open.discard(id(value))
        if found is None:
            if not values.is_handle(kind):
                self.by_class[kind] = None
            return [told, shown] if shown else told
        return [found, shown] if shown else found

    def _compared(self, value: Any, kind: type, depth: int) -> Any:
        """What counts of an object besides its class. None: nothing."""
        if issubclass(kind, BaseException):
            return [kind.__qualname__, self.read(value.args, depth)]
        if (held := values.elements(kind, value)) is not None:
            read = [self.read(each, depth) for each in held]
            return sorted(read, key=repr) if issubclass(kind, Set) else read
        if (fields := values.fields(kind, value)) is not None:
            return self.read(fields, depth)
        if kind in self.unsteady:
            return None
        if (text := values.own_text(kind, value)) is not None:
            self.said.append((kind, str(text)))
            return OwnText(timeless(each, self.known) if isinstance(each, str) else each for each in text)
        own = values.own_attributes(kind, value)
        return None if own is None else self.read(own, depth)

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
