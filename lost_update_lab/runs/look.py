"""A look at what values hold: attributes and items, and what those hold in turn, down to plain values.

Two looks are compared far more often than read: each search takes some, and finds nothing changed in most. So a look
notes names and values as they come, and writes `module.name[3]` → text only when it is read. With the modules of
a project with 400 test files, two looks take 0.4 of the CPU time that they took when each name was written at once,
which was two thirds of a search of five schedules.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from mmap import mmap
from threading import Lock, RLock, Semaphore
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, TypeVar

from lost_update_lab.model.digest import digest

PLAIN_TYPES = (bool, int, float, complex, str, bytes, type(None))
#: raw memory, which processes may share; and how the text of what it holds begins
MEMORY, IN_MEMORY = (ctypes._SimpleCData, ctypes.Array, ctypes.Structure, mmap), "memory"
_RAW_LOCKS = ("_thread", "itertools")
_LOCKS = (type(Lock()), type(RLock()))
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
        "aiomysql",
    ),
    *("sqlalchemy", "django", "kazoo", "logging", "weakref", "typing"),
    "unittest.mock",  # what a mock has recorded: gates/recorded_calls.py
)
#: a ready-made invariant, and the tables that it is asked about, are no state of the user's code
_OURS = ("lost_update_lab.invariants", "lost_update_lab.snapshot")
#: a value's text is cut at this length; the insides of at most this many values are looked at
LONGEST, MOST = 10_000, 5_000
MOST_CLASSES = 10_000
T = TypeVar("T")


class Text(str):
    """What is written as it stands: a text about a value, or a name with its dot or brackets."""

    __slots__ = ()


#: how the names inside a value are written: `.name` or `[3]`; and the name of what is said of the value as a whole
ATTRIBUTES, ITEMS, _ITSELF = object(), object(), Text("")
Inside = Iterable[tuple[Any, Any]]


class ValueReader(NamedTuple):
    """How values of one class are looked at. `text`: all that is said of them, or None if they are looked into.
    `of_module`: only in the module where they were defined. `is_lock`: they can be held."""

    text: Callable[[Any], Text | None] | None = None
    inside: Callable[[Any], Inside] | None = None
    style: object = ATTRIBUTES
    of_module: bool = False
    is_lock: bool = False


_PLAINLY, _LEFT_OUT = ValueReader(), ValueReader(style=None)


class Look(Mapping[str, str]):
    """Name → a text of what it held at that moment. Two looks are equal if everything held the same."""

    def __init__(self) -> None:
        #: an entry has the same number in each of these. The holder is the number of another entry, or -1
        self._names: list[Any] = []
        self._values: list[Any] = []
        self._holders: list[int] = []
        self._seen: set[int] = set()
        self._locks: list[tuple[int, Any]] = []

    def at_module(self, module: ModuleType) -> None:
        """Note what the globals of a module hold."""
        me, name = self._note(module.__name__, ATTRIBUTES, -1), module.__name__
        self._each(((key, each) for key, each in list(vars(module).items()) if key[:2] != "__"), name, me)

    def at_value(self, name: str, value: Any) -> None:
        """Note what any other value holds, under this name."""
        self._at(name, value, _reader(type(value)), "", -1)

    def locks(self) -> dict[str, Any]:
        """Name → each lock or semaphore that was met."""
        return {self._paths[number]: lock for number, lock in self._locks}

    def _each(self, inside: Inside, module: str, holder: int) -> None:
        for name, value in inside:
            if (read := _reader(type(value))) is _PLAINLY:
                self._note(name, value, holder)
            elif not read.of_module or value.__module__ == module:
                self._at(name, value, read, module, holder)

    def _at(self, name: Any, value: Any, read: ValueReader, module: str, holder: int) -> None:
        """`module`: the name of the module whose global the value belongs to."""
        number = len(self._names)
        if read.text and (text := read.text(value)) is not None:
            self._note(name, text, holder)
        elif read.inside and id(value) not in self._seen and len(self._seen) < MOST:
            self._seen.add(id(value))
            self._each(read.inside(value), module, self._note(name, read.style, holder))
        if read.is_lock and len(self._names) > number:
            self._locks.append((number, value))

    def _note(self, name: Any, value: Any, holder: int) -> int:
        self._names.append(name)
        self._values.append(value)
        self._holders.append(holder)
        return len(self._names) - 1

    @cached_property
    def _paths(self) -> list[str]:
        paths: list[str] = []
        for name, holder in zip(self._names, self._holders, strict=True):
            paths.append(name if holder < 0 else paths[holder] + _written(name, self._values[holder]))
        return paths

    @cached_property
    def _texts(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for path, value in zip(self._paths, self._values, strict=True):
            if type(value) is Text:
                found[path] = str(value)
            elif value is not ATTRIBUTES and value is not ITEMS:
                found[path] = repr(value)[:LONGEST]
        return found

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Look):
            return super().__eq__(other)
        mine, theirs = ((each._holders, each._names, each._values) for each in (self, other))
        # 1, 1.0 and True are equal, and no number that is none is equal to another one
        alike = mine == theirs and [*map(type, self._values)] == [*map(type, other._values)]
        return alike or self._texts == other._texts

    __hash__ = None  # type: ignore[assignment]


def _written(name: Any, style: object) -> str:
    if type(name) is Text:
        return name
    return f".{name}" if style is ATTRIBUTES else f"[{name!r}]"


def memory_of(value: Any) -> str:
    """What memory of its own kind holds (MEMORY)."""
    try:
        held = value[:] if isinstance(value, mmap) else bytes(value)
    except (TypeError, ValueError, BufferError):  # it is closed, or holds pointers
        held = b""
    return f"{IN_MEMORY} {digest(held).hex()}"


def _once(question: Callable[[type[Any]], T]) -> Callable[[type[Any]], T]:
    """Each class is asked about once: a project has few classes and many values (half of the look's time)."""
    known: dict[type[Any], T] = {}

    def answer(kind: type[Any]) -> T:
        try:
            return known[kind]
        except KeyError:
            if len(known) >= MOST_CLASSES:
                known.clear()
            return known.setdefault(kind, question(kind))
        except TypeError:  # its metaclass makes it unhashable
            return question(kind)

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
def _reader(kind: type[Any]) -> ValueReader:
    if kind in (*PLAIN_TYPES, Text):
        return _PLAINLY
    if kind.__module__ in _RAW_LOCKS:
        return ValueReader(_without_address, _attributes, is_lock=kind in _LOCKS)
    if issubclass(kind, MEMORY):
        return ValueReader(lambda value: Text(memory_of(value)))
    if hasattr(kind, "cache_info"):
        return ValueReader(_cached)
    if issubclass(kind, FunctionType):
        return ValueReader(_cached_by_a_wrapper, _in_a_function, of_module=True)
    if issubclass(kind, type):
        return ValueReader(inside=_attributes, of_module=True)
    left_out = issubclass(kind, ModuleType) or is_a_clients(kind) or kind.__module__.startswith(_OURS)
    return _LEFT_OUT if left_out else _container(kind)


def _container(kind: type[Any]) -> ValueReader:
    inside: Callable[[Any], Inside]
    if is_mapping(kind):
        inside, style = _items, ITEMS
    elif issubclass(kind, list | tuple | deque):
        inside, style = _places, ITEMS
    else:
        inside, style = _members if issubclass(kind, set | frozenset) else _attributes, ATTRIBUTES
    slots = [name for each in kind.__mro__ for name in _names_of(getattr(each, "__slots__", ()))]
    if not slots:
        return ValueReader(inside=inside, style=style, is_lock=issubclass(kind, Semaphore))
    return ValueReader(inside=lambda value: chain(inside(value), _in_slots(value, slots)), style=style)


def _names_of(slots: Any) -> list[str]:
    return [name for name in slots if isinstance(name, str)]


def _without_address(value: Any) -> Text | None:
    if hasattr(value, "__dict__"):  # what a thread keeps for itself
        return None
    return Text(repr(value).partition(" object")[0].partition(" at 0x")[0])


def _cached(value: Any) -> Text:
    return Text(f"{value.cache_info().currsize} cached")


def _cached_by_a_wrapper(value: Any) -> Text | None:
    return _cached(value) if "cache_info" in vars(value) else None


def _items(value: Any) -> Inside:
    yield _ITSELF, len(value)
    yield from ((key, each) for key, each in list(value.items()) if type(key) in PLAIN_TYPES)


def _places(value: Any) -> Inside:
    yield _ITSELF, len(value)
    yield from enumerate(list(value))


def _members(value: Any) -> Inside:
    yield _ITSELF, Text(repr(sorted(repr(each) for each in value if type(each) in PLAIN_TYPES)))


def _attributes(value: Any) -> Inside:
    held = getattr(value, "__dict__", None) or {}
    return [(name, each) for name, each in list(held.items()) if name[:2] != "__"]


def _in_slots(value: Any, slots: list[str]) -> Inside:
    return ((Text(f".{name}"), getattr(value, name)) for name in slots if hasattr(value, name))


def _in_a_function(value: Any) -> Inside:
    """Most functions have none of these."""
    if closure := value.__closure__:
        cells = zip(value.__code__.co_freevars, closure, strict=False)
        yield from ((name, cell.cell_contents) for name, cell in cells if _is_filled(cell))
    if defaults := value.__defaults__:
        yield from ((Text(f" argument {place}"), each) for place, each in enumerate(defaults))
    if keywords := value.__kwdefaults__:
        yield from keywords.items()
    yield from list(vars(value).items())


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
