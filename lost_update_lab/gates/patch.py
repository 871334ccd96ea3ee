"""Replace a function by another, wherever a module holds it (`from time import sleep` makes it do so), or a class, or
the default of an argument (`def wait(sleep=time.sleep)`). What else may hold it: held.py."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from lost_update_lab.gates.held import Undo, replace

_STANDARD = sysconfig.get_paths()["stdlib"]
_PACKAGES = sysconfig.get_paths()["purelib"]
#: who keeps a built-in function, under which name, and the function
Kept = tuple[Any, str, Any]
#: it had no such attribute of its own
_NONE = object()


class _Holders:
    """Where modules hold certain values: in names of theirs, and in their classes and defaults.

    A module is looked into again when it has more names or fewer. To look into each of some thousand modules takes 0.1
    s, longer than several schedules: it was a quarter of the CPU time of the engine's tests.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = {id(value): value for value in values}  # held, so that no other value gets its id
        self._known: WeakKeyDictionary[Any, tuple[int, list[str], list[Kept]]] = WeakKeyDictionary()
        #: the modules at the last look, how many names each had, and what the look has found
        self._last: tuple[list[Any], list[int]] = ([], [])
        self._found: list[tuple[Any, list[str], list[Kept]]] = []

    def now(self) -> list[tuple[Any, list[str], list[Kept]]]:
        """Modules, their names for such values, and what their classes and defaults keep."""
        modules = [
            each for each in list(sys.modules.values()) if isinstance(getattr(each, "__dict__", None), dict)
        ]
        sizes = [len(each.__dict__) for each in modules]
        if self._last != (modules, sizes):
            self._last = modules, sizes
            self._found = [(each, *self._of(each)) for each in modules if _is_looked_into(each)]
            self._found = [each for each in self._found if each[1] or each[2]]
        return self._found

    def _of(self, module: Any) -> tuple[list[str], list[Kept]]:
        held = module.__dict__
        size, names, kept = self._known.get(module, (0, [], []))
        if size != len(held):
            names = [name for name, value in list(held.items()) if id(value) in self._values]
            if isinstance(module, ModuleType) and _is_of_a_package(module):
                kept = [each for each in _kept_by(module) if id(each[2]) in self._values]
            self._known[module] = (len(held), names, kept)
        return names, kept


#: by the ids of what is replaced: the gates replace the same for each harness
_holders: dict[frozenset[int], _Holders] = {}


class Patches:
    """What was replaced, so that it can be put back."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any]] = []
        #: id of a value → the value, and what to put in its place
        self._wanted: dict[int, tuple[Any, Any]] = {}
        self._held: list[Undo] = []
        #: id of a replacement → itself, and what it stands for
        self._originals: dict[int, tuple[Any, Any]] = {}
        #: the modules that were loaded before
        self._loaded: frozenset[str] = frozenset()

    def method(self, owner: Any, name: str, replacement: Any) -> None:
        assert hasattr(owner, name), name
        self._undo.append((owner, name, vars(owner).get(name, _NONE)))
        setattr(owner, name, replacement)

    def entry(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Where the user has none."""
        if key not in table:
            table[key] = value
            self._held.append(partial(table.pop, key, None))

    def everywhere(self, original: Any, replacement: Any) -> None:
        """At the next `apply`, replace it in every module that is loaded. Modules that are loaded later import the
        replacement, and get the original at `undo`. In a class that they make (`timer = time.time`) a built-in function
        is no method, so neither is what stands in its place."""
        if isinstance(replacement, FunctionType) and not isinstance(original, FunctionType):
            replacement = staticmethod(replacement)
        self._wanted[id(original)] = (original, replacement)

    def apply(self, in_objects: bool = True) -> None:
        """Replace what was asked for until now. `in_objects`: where objects hold it, too."""
        if not self._wanted:
            return
        self._originals |= {id(new): (new, original) for original, new in self._wanted.values()}
        self._loaded = self._loaded or frozenset(sys.modules)
        holders = _holders.setdefault(
            frozenset(self._wanted), _Holders(original for original, _ in self._wanted.values())
        )
        for module, names, kept in holders.now():
            for name in names:
                if (wanted := self._wanted.get(id(getattr(module, name, None)))) is not None:
                    self.method(module, name, wanted[1])
            for each in kept:
                self._replace(*each)
        if in_objects:
            self._held += replace(self._wanted, self._undo)
        self._wanted.clear()

    def _replace(self, holder: Any, name: str, value: Any) -> None:
        """In a class, or among the defaults of a function."""
        replacement, held = self._wanted[id(value)][1], getattr(holder, name)
        if held is value:
            static = isinstance(replacement, staticmethod)
            self.method(holder, name, replacement if static else staticmethod(replacement))
        elif (new := _exchanged(held, {id(value): (value, replacement)})) is not held:
            self._undo.append((holder, name, held))
            setattr(holder, name, new)

    def undo(self) -> None:
        for put_back in reversed(self._held):
            put_back()
        self._held.clear()
        for owner, name, original in reversed(self._undo):
            if original is not _NONE:
                setattr(owner, name, original)
            else:
                with suppress(AttributeError):  # somebody else has removed it
                    delattr(owner, name)
        self._undo.clear()
        self._undo_in_new_modules()

    def _undo_in_new_modules(self) -> None:
        """They were loaded meanwhile, and hold replacements."""
        new = [each for name, each in list(sys.modules.items()) if name not in self._loaded]
        for module in new if self._originals else ():
            if isinstance(module, ModuleType) and _is_looked_into(module):
                for holder, name, value in list(_all_kept_by(module)):
                    if (original := _exchanged(value, self._originals)) is not value:
                        with suppress(AttributeError, TypeError):  # read-only
                            setattr(holder, name, original)
        self._originals.clear()
        self._loaded = frozenset()


def _exchanged(value: Any, by: Mapping[int, tuple[Any, Any]]) -> Any:
    """What stands there instead of a value, also among the defaults of a function. The value itself: nothing does."""
    if id(value) in by:
        return by[id(value)][1]
    if type(value) is tuple and any(id(each) in by for each in value):
        return tuple(_exchanged(each, by) for each in value)
    if type(value) is dict and any(id(each) in by for each in value.values()):
        return {key: _exchanged(each, by) for key, each in value.items()}
    return value


def _is_looked_into(module: Any) -> bool:
    return not str(module.__dict__.get("__name__")).startswith("lost_update_lab.")


def _is_of_a_package(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None) or ""
    return file.startswith(_PACKAGES) or not file.startswith(_STANDARD)


def _kept_by(module: ModuleType) -> Iterator[Kept]:
    """Attributes of classes, defaults of arguments. Only
    types are looked at: some modules hold stand-ins, and to ask what those are would import something."""
    for value in list(vars(module).values()):
        if type(value) is FunctionType and value.__module__ == module.__name__:
            yield from _defaults_of(value)
        elif issubclass(type(value), type) and value.__module__ == module.__name__:
            for name, each in list(vars(value).items()):
                plain = each.__func__ if type(each) in (staticmethod, classmethod) else each
                if type(each) is BuiltinFunctionType:
                    yield value, name, each
                elif type(plain) is FunctionType:
                    yield from _defaults_of(plain)


def _defaults_of(function: FunctionType) -> Iterator[Kept]:
    """Functions of C, and classes: `def due(dates=datetime)`."""
    for each in function.__defaults__ or ():
        if type(each) in (BuiltinFunctionType, type):
            yield function, "__defaults__", each
    for each in (function.__kwdefaults__ or {}).values():
        if type(each) in (BuiltinFunctionType, type):
            yield function, "__kwdefaults__", each


def _all_kept_by(module: ModuleType) -> Iterator[Kept]:
    """Its names, those of its classes, their annotations, and all defaults. Other tuples and dicts stay: somebody else
    may hold the same one."""
    for name, value in list(vars(module).items()):
        if type(value) not in (tuple, dict):
            yield module, name, value
        if type(value) is FunctionType and value.__module__ == module.__name__:
            yield from _all_defaults_of(value)
        elif issubclass(type(value), type) and value.__module__ == module.__name__:
            yield from _all_of_a_class(value)


def _all_of_a_class(kind: type) -> Iterator[Kept]:
    for name, value in list(vars(kind).items()):
        plain = value.__func__ if type(value) in (staticmethod, classmethod) else value
        if type(plain) is FunctionType:
            yield from _all_defaults_of(plain)
        if type(value) not in (tuple, dict) or name == "__annotations__":
            yield kind, name, value


def _all_defaults_of(function: FunctionType) -> Iterator[Kept]:
    yield function, "__defaults__", function.__defaults__
    yield function, "__kwdefaults__", function.__kwdefaults__
