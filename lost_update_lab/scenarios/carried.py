"""What the operations carry with them: arguments, closures, the object of a method. Workers stand for processes, which
share none of it; an object that both of them change is a mistake that is easily made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from inspect import unwrap
from types import FunctionType, MethodType
from typing import Any

from lost_update_lab.runs.look import MEMORY, PLAIN_TYPES, is_a_clients, is_mapping, memory_of
from lost_update_lab.under_test.scenario import Operation, Scenario

#: how deep an object is inspected, and how many of its values
DEEPEST, MOST = 3, 200
#: attributes of the classes of rows, in Django and in SQLAlchemy
_ROWS = ("_meta", "__mapper__")


def carried(scenario: Scenario) -> dict[str, str]:
    """`whose name of a value` → a text of what it holds now."""
    found: dict[str, str] = {}
    for worker in scenario.callers:
        for operation in worker.operations:
            for name, value in values(operation):
                for path, text in _inside(value, name, DEEPEST):
                    if len(found) < MOST:
                        found[f"{worker.name}'s {path}"] = text
    return found


def values(operation: Operation) -> Iterator[tuple[str, Any]]:
    """What an operation carries with it, by name."""
    call: Any = operation.call
    if isinstance(call, partial):
        yield from _named(call.args, call.keywords)
        call = call.func
    if isinstance(call, MethodType):
        yield "self", call.__self__
        call = call.__func__
    if isinstance(call, FunctionType):
        for name, cell in zip(call.__code__.co_freevars, call.__closure__ or (), strict=False):
            try:
                yield name, cell.cell_contents
            except ValueError:  # it is empty yet
                continue
    call = unwrap(call)
    names = call.__code__.co_varnames[: call.__code__.co_argcount] if isinstance(call, FunctionType) else ()
    yield from _named(operation.args, operation.keywords, names)


def _named(
    args: tuple[Any, ...], keywords: Mapping[str, Any], names: tuple[str, ...] = ()
) -> Iterator[tuple[str, Any]]:
    for number, value in enumerate(args):
        yield names[number] if number < len(names) else f"argument {number + 1}", value
    yield from keywords.items()


def _inside(value: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    kind = type(value)  # isinstance() would ask a lazy object, which may ask the database
    if kind in PLAIN_TYPES:
        yield path, repr(value)[:200]
        return
    if issubclass(kind, MEMORY):
        yield path, memory_of(value)
        return
    parts: list[tuple[str, Any]] = []
    if is_mapping(kind):
        parts = [(f"[{key!r}]", each) for key, each in list(value.items())]
    elif issubclass(kind, list | tuple | set | frozenset):
        parts = [(f"[{place}]", each) for place, each in enumerate(list(value))]
    elif _is_inspected(kind):
        attributes = list(getattr(value, "__dict__", {}).items())
        parts = [(f".{name}", each) for name, each in attributes if not name.startswith("_")]
    if depth and not _is_inspected(kind):
        yield path, f"{len(parts)} items"
    for name, each in parts[:MOST] if depth else ():
        yield from _inside(each, path + name, depth - 1)


def _is_inspected(kind: type[Any]) -> bool:
    """Is it an object of the user's, or a row?"""
    if is_mapping(kind) or issubclass(kind, type | FunctionType | list | tuple | set | frozenset):
        return False
    return any(hasattr(kind, name) for name in _ROWS) or not is_a_clients(kind)
