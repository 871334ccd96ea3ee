"""State of the user's modules that survives a schedule, although a worker stands for a process that has just begun.

Inspected: what the modules' globals hold, what those hold in turn (attributes, items), attributes of their classes and
functions, closures and defaults. Left out: clients and their pools, which the gates know.
"""

from __future__ import annotations

import ctypes
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from mmap import mmap
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from lost_update_lab.model.digest import digest
from lost_update_lab.telling.lines import is_own

PLAIN = (bool, int, float, complex, str, bytes, type(None))
#: raw memory, which processes may share; and how the text of what it holds begins
MEMORY, IN_MEMORY = (ctypes._SimpleCData, ctypes.Array, ctypes.Structure, mmap), "memory"
_RAW_LOCKS = ("_thread", "itertools")
#: modules of client libraries: an object belongs to a client if one of its classes comes from there
_CLIENTS = (
    *(
        "redis.client",
        "redis.connection",
        "redis.commands",
        "redis.asyncio",
        "redis.cluster",
        "redis.sentinel",
    ),
    *(
        "redis.retry",
        "redis.backoff",
        "redis.credentials",
        "redis._parsers",
        "psycopg",
        "psycopg_pool",
        "pymysql",
    ),
    *("sqlalchemy", "django", "kazoo", "logging", "weakref", "typing"),
)
#: a value's text is cut at this length; at most this many values are inspected
LONGEST, MOST = 10_000, 5_000
MOST_CLASSES = 10_000
T = TypeVar("T")


def state(root: str = "", first: Collection[str] = ()) -> Mapping[str, str]:
    """`module.name` → a text of what it holds now, in this thread. `root`: only modules below this name. `first`: the
    names of modules that are inspected before the others, as there is an end to it (MOST)."""
    found: dict[str, str] = {}
    seen: set[int] = set()
    for module in sorted(own_modules(root), key=lambda each: each.__name__ not in first):
        for name, value in list(vars(module).items()):
            if not name.startswith("__"):
                _look(value, f"{module.__name__}.{name}", module.__name__, found, seen)
    return found


class _Own:
    """The user's modules below `root`, by name. They are looked for again after an import."""

    def __init__(self, root: str) -> None:
        self._root, self._loaded = root, list[ModuleType]()
        self._own: list[ModuleType] = []

    def now(self) -> list[ModuleType]:
        loaded = list(sys.modules.values())
        if loaded != self._loaded:
            self._loaded, self._own = loaded, [*self._found()]
        return self._own

    def _found(self) -> Iterator[ModuleType]:
        for name, module in sorted(sys.modules.items()):
            file = getattr(module, "__file__", None)
            below = not self._root or name == self._root or name.startswith(f"{self._root}.")
            if below and isinstance(file, str) and is_own(file):
                yield module


_own = lru_cache(_Own)


def own_modules(root: str) -> list[ModuleType]:
    """Kept between two looks: to go through the thousands of loaded modules took 40 % of a search's CPU time."""
    return _own(root).now()


def _look(value: Any, path: str, module: str, found: dict[str, str], seen: set[int]) -> None:
    """Write down what `value` holds, under `path`. `module`: the one whose global it belongs to."""
    kind = type(value)
    if kind in PLAIN:
        found[path] = repr(value)[:LONGEST]
    elif kind.__module__ in _RAW_LOCKS and not hasattr(value, "__dict__"):
        found[path] = repr(value).partition(" object")[0].partition(" at 0x")[0]
    elif issubclass(kind, MEMORY):
        found[path] = memory_of(value)
    elif hasattr(kind, "cache_info") or (kind is FunctionType and "cache_info" in vars(value)):
        found[path] = f"{value.cache_info().currsize} cached"
    elif id(value) not in seen and len(seen) < MOST and not _is_left_out(value, module):
        seen.add(id(value))
        for name, each in _inside(value):
            _look(each, path + name, module, found, seen)


def memory_of(value: Any) -> str:
    """What memory of its own kind holds (MEMORY)."""
    try:
        held = value[:] if isinstance(value, mmap) else bytes(value)
    except (TypeError, ValueError, BufferError):  # it is closed, or holds pointers
        held = b""
    return f"{IN_MEMORY} {digest(held).hex()}"


def _is_left_out(value: Any, module: str) -> bool:
    """Is it not the module's own: a module, a class or a function from elsewhere, or a client?"""
    if isinstance(value, ModuleType):
        return True
    if isinstance(value, type | FunctionType):
        return value.__module__ != module
    return is_a_clients(type(value))


def _once(question: Callable[[type[Any]], T]) -> Callable[[type[Any]], T]:
    """Each class is asked about once: a project has few classes and many values (half of the look's time). They are
    known by their identity: a metaclass may make them unhashable."""
    known: dict[int, tuple[type[Any], T]] = {}

    def answer(kind: type[Any]) -> T:
        found = known.get(id(kind))
        if found is None:
            if len(known) >= MOST_CLASSES:
                known.clear()
            found = known[id(kind)] = kind, question(kind)  # it is held, so nothing else gets its number
        return found[1]

    return answer


@_once
def is_a_clients(kind: type[Any]) -> bool:
    return any(f"{each.__module__}.".startswith(f"{name}.") for each in kind.__mro__ for name in _CLIENTS)


@_once
def is_mapping(kind: type[Any]) -> bool:
    try:
        return issubclass(kind, Mapping)
    except TypeError:  # abc keeps what it was asked in a set
        return False


@_once
def _slots(kind: type[Any]) -> list[str]:
    slots = (name for each in kind.__mro__ for name in getattr(each, "__slots__", ()))
    return [name for name in slots if isinstance(name, str)]


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    if is_mapping(type(value)):
        yield "", len(value)
        yield from ((f"[{key!r}]", each) for key, each in list(value.items()) if type(key) in PLAIN)
    elif isinstance(value, list | tuple | deque):
        yield "", len(value)
        yield from ((f"[{place}]", each) for place, each in enumerate(list(value)))
    elif isinstance(value, set | frozenset):
        yield "", repr(sorted(repr(each) for each in value if type(each) in PLAIN))
    elif isinstance(value, FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=False)
        yield from ((f".{name}", cell.cell_contents) for name, cell in cells if _is_filled(cell))
        yield from ((f" argument {place}", each) for place, each in enumerate(value.__defaults__ or ()))
        yield from ((f".{name}", each) for name, each in (value.__kwdefaults__ or {}).items())
        yield from ((f".{name}", each) for name, each in list(vars(value).items()))
    elif hasattr(value, "__dict__"):
        yield from (
            (f".{name}", each) for name, each in list(vars(value).items()) if not name.startswith("__")
        )
    yield from ((f".{name}", getattr(value, name)) for name in _slots(type(value)) if hasattr(value, name))


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
