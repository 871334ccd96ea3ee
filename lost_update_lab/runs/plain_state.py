"""State of the user's modules that can be put back: plain values, and containers of nothing else.

Looked for in the modules' globals, in the attributes of their own classes, of instances of those, and of a
SimpleNamespace. What else there is (an object of a library, a client) cannot be copied so that nobody notices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from lost_update_lab.runs.look import PLAIN_TYPES

#: at most this many objects are looked into, and this many items of a container
MOST, LONGEST = 2_000, 1_000
#: most of what a module holds
_LEFT_OUT = frozenset({FunctionType, ModuleType})
_CONTAINERS = frozenset({list, dict, set, deque})


class Place(NamedTuple):
    """Where a value stands, and a copy of it. `container`: the list, dict or set itself."""

    owner: Any
    name: str
    value: Any
    container: Any = None

    def put(self, value: Any) -> None:
        setattr(self.owner, self.name, value)


StatePlaces = Mapping[str, Place]


def places(modules: Iterable[ModuleType]) -> StatePlaces:
    """`module.name` → its place, in these modules."""
    found: dict[str, Place] = {}
    seen: set[int] = set()
    for module in modules:
        _inside(module, vars(module), module.__name__, module.__name__, found, seen)
    return found


def put_back(before: StatePlaces, now: StatePlaces) -> None:
    """Whatever is plain now, and was before, holds again what it held."""
    for name, place in now.items():
        if name not in before:
            continue
        then = before[name]
        if then.container is None:
            if place.container is None:
                place.put(then.value)
        elif place.container is not None:
            _fill(then.container, then.value)
            if place.container is not then.container:
                place.put(then.container)


def _inside(
    owner: Any, held: Mapping[str, Any], path: str, module: str, found: dict[str, Place], seen: set[int]
) -> None:
    for name, value in list(held.items()):
        if name.startswith("__"):
            continue
        kind = object if type(type(value)).__hash__ is None else type(value)
        if kind in _LEFT_OUT:
            continue
        if kind in PLAIN_TYPES:
            found[f"{path}.{name}"] = Place(owner, name, value)
        elif kind in _CONTAINERS and _is_plain(value):
            found[f"{path}.{name}"] = Place(owner, name, _copied(value), value)
        elif _is_own(value, module) and id(value) not in seen and len(seen) < MOST:
            seen.add(id(value))
            _inside(value, vars(value), f"{path}.{name}", module, found, seen)


def _is_own(value: Any, module: str) -> bool:
    kind = value if isinstance(value, type) else type(value)
    return (kind.__module__ == module and hasattr(value, "__dict__")) or kind is SimpleNamespace


def _is_plain(value: Any) -> bool:
    """A container of nothing but plain values, and of such containers."""
    if type(value) not in _CONTAINERS or len(value) > LONGEST:
        return False
    return all(type(each) in PLAIN_TYPES or _is_plain(each) for each in _items(value))


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value
        yield from value.values()
    else:
        yield from value


def _copied(value: Any) -> Any:
    if type(value) in PLAIN_TYPES:
        return value
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return type(value)(_copied(each) for each in value)


def _fill(container: Any, value: Any) -> None:
    """The same object, with these contents."""
    if container == value:
        return
    container.clear()
    if isinstance(container, dict | set):
        container.update(_copied(value))
    else:
        container.extend(_copied(value))
