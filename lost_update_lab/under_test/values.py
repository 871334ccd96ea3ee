"""How an object that is no plain value is told: by its fields, by a text of its own, or by its class only.

An object that shows a row may hold what was read long before the operation ended, and nobody uses it. So an object of
an ORM counts by its class, as does one that says nothing about itself. A lazy one is never asked: it would be
evaluated.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Sequence, Set, ValuesView
from functools import lru_cache
from types import GeneratorType, ModuleType, SimpleNamespace
from typing import Any

from lost_update_lab.telling.lines import is_own

#: libraries (the first part of a module's name) whose objects show rows, are lazy, or talk to a server
OF_SERVERS = frozenset(
    {
        "django",
        "sqlalchemy",
        "sqlmodel",
        "peewee",
        "tortoise",
        "pony",
        "psycopg",
        "pymysql",
        "redis",
        "celery",
    }
)
#: what only tells one object from another, and what two runs may write in two ways
_ADDRESS = re.compile(r"\b0x[0-9a-f]{4,}\b", re.IGNORECASE)
_TIME = "datetime.datetime("
#: where a class of attrs, pydantic (2, and 1) or msgspec names its fields
_FIELDS = ("__attrs_attrs__", "model_fields", "__fields__", "__struct_fields__")
_NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")


class OwnText(list[Any]):
    """An object's own text. The whole numbers in it stand apart: one may be the number of a row."""

    def __repr__(self) -> str:
        return "".join(map(str, self))

    __str__ = __repr__


def is_of_server(kind: type) -> bool:
    """Does it show a row, or belong to a client? psycopg's Range is a value."""
    modules = {each.__module__.partition(".")[0] for each in kind.__mro__}
    return hasattr(kind, "__mapper__") or bool(modules & OF_SERVERS and not _is_value(kind))


def _is_value(kind: type) -> bool:
    return kind.__module__.startswith(("psycopg.types.", "sqlalchemy.engine.row"))


def is_handle(kind: type) -> bool:
    """A library's cursor, a session, a class: nobody takes it for an answer."""
    closes = hasattr(kind, "close") and not issubclass(kind, GeneratorType)
    return (closes or issubclass(kind, ModuleType | type)) and not _is_of_user(kind)


def _has_own(kind: type, method: str) -> bool:
    return getattr(kind, method) is not getattr(object, method)


def elements(kind: type, value: Any) -> list[Any] | None:
    """Those of a container besides the built-in ones. None: it is none. In a set they have no order."""
    if is_of_server(kind) or not issubclass(kind, Sequence | Set | ValuesView) or kind is range:
        return None
    return list(value)


def fields(kind: type, value: Any) -> dict[str, Any] | None:
    """Of a dataclass, attrs, pydantic, msgspec, a SimpleNamespace, or a class with slots. None: it has none."""
    if dataclasses.is_dataclass(kind):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if is_of_server(kind):
        return None
    if issubclass(kind, SimpleNamespace):
        return dict(vars(value))
    named = next((found for each in _FIELDS if (found := getattr(kind, each, None))), None)
    if isinstance(named, dict | tuple):
        names = [str(getattr(each, "name", each)) for each in named]
        more = getattr(value, "__pydantic_extra__", None)
        return {each: getattr(value, each, None) for each in names} | (more if isinstance(more, dict) else {})
    if (slots := list(_slots(kind))) and not hasattr(value, "__dict__") and not is_handle(kind):
        return {each: getattr(value, each, None) for each in slots}
    return None


def _slots(kind: type) -> Iterator[str]:
    for each in kind.__mro__:
        found = each.__dict__.get("__slots__", ())
        names = [found] if isinstance(found, str) else list(found)
        yield from (name for name in names if not name.startswith("__"))


def own_text(kind: type, value: Any) -> OwnText | None:
    """What the object says of itself, if its class has a `__repr__` or `__str__` of its own. Of a library's class only
    if it compares by value: others tell where they are connected, or what they wait for."""
    by_value = _has_own(kind, "__eq__")
    if is_of_server(kind) or is_handle(kind) or callable(value) or not (by_value or _is_of_user(kind)):
        return None
    if _has_own(kind, "__repr__"):
        say: Any = repr
    elif _has_own(kind, "__str__"):
        say = str
    else:
        return None
    try:
        told = str(say(value))
    except Exception:  # noqa: BLE001  (it needs what is over by now)
        return None
    if _ADDRESS.search(told) or _TIME in told:
        return None
    return OwnText(int(part) if place % 2 else part for place, part in enumerate(_NUMBER.split(told)))


def own_attributes(kind: type, value: Any) -> dict[str, Any] | None:
    """All of them, if the class compares by value and has no text of its own. None: it does not."""
    if not _has_own(kind, "__eq__") or is_of_server(kind) or is_handle(kind) or callable(value):
        return None
    found = getattr(value, "__dict__", None)
    return dict(found) if isinstance(found, dict) else None


@lru_cache(maxsize=1 << 10)
def _is_of_user(kind: type) -> bool:
    try:
        return is_own(inspect.getfile(kind))
    except (TypeError, OSError):
        return kind.__module__ == "__main__"
