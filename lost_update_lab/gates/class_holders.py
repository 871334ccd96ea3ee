"""How many hold a class, such as `datetime`, and could read the clock through it.

Not all that refer to a class do: a dict may look something up by a value's type, and each connection of PyMySQL has
one. So the number of references (sys.getrefcount) says too much. Where it has changed, the collector is asked who
refers to this class. It does not show a function with the class as a constant default. To look for these among all
objects takes two thirds of the time (0.1 of 0.15 s in this lab's own tests), so it happens only where more or fewer
references are hidden than before, apart from those of the functions that were found by then.
"""

from __future__ import annotations

import gc
import sys
from collections import defaultdict, deque
from collections.abc import Mapping
from functools import partial
from types import BuiltinMethodType, CellType, FunctionType
from typing import Any, NamedTuple
from weakref import ref

from lost_update_lab.runs import garbage

#: of C, and what these hold can be replaced
_OF_C = frozenset(
    {dict, list, deque, tuple, set, defaultdict, FunctionType, CellType, partial, staticmethod, classmethod}
)
#: set for a class that was made by a class statement (Py_TPFLAGS_HEAPTYPE)
_OF_PYTHON = 1 << 9
#: Python 3.12 counts nobody who holds a class of its own: it is asked each time
_IMMORTAL = 1 << 29


class _Counted(NamedTuple):
    """How many refer to a class, and how many of these neither the collector has shown nor `constants` are; functions
    with the class as a constant default; its methods that somebody holds, as in `now = datetime.now`; how many hold
    the class, with the constants and without the methods."""

    references: int = 0
    hidden: int = 0
    constants: tuple[ref[FunctionType], ...] = ()
    methods: tuple[ref[BuiltinMethodType], ...] = ()
    holders: int = 0


#: by the id of a class
_last: dict[int, _Counted] = {}


def count(kind: type, references: int, back: Mapping[int, int], own: set[int]) -> int:
    """`references`: those that are not `back`, by the id of what is held: what only gives the class back holds it so
    many times. `own`: the ids of containers that do not count."""
    last = _last.get(id(kind), _Counted())
    if last.references != references or references > _IMMORTAL:
        with garbage.thawed():
            last = _last[id(kind)] = _count(kind, references, last, back, own)
    return last.holders + sum(_hold(each, back) for each in last.methods)


def _hold(method: ref[BuiltinMethodType], back: Mapping[int, int]) -> int:
    held = method()
    return 0 if held is None else sys.getrefcount(held) - back[id(held)] - 2  # besides here


def _count(kind: type, references: int, last: _Counted, back: Mapping[int, int], own: set[int]) -> _Counted:
    """Types are compared: isinstance() would also ask the object, and a lazy object of Django would then be
    evaluated."""
    referrers = [each for each in gc.get_referrers(kind) if not _is_constant(each)]
    holders, methods = 0, list[ref[BuiltinMethodType]]()
    constants = [function for each in last.constants if (function := each()) and _is_given(kind, function)]
    hidden = references + back[id(kind)] - len(referrers)
    if hidden - len(constants) != last.hidden:
        constants = as_a_constant(kind)
    for each in referrers:
        if type(each) is BuiltinMethodType:
            methods.append(ref(each))
        elif _may_be_changed(type(each)) and not _is_key(kind, each):
            holders += id(each) not in own
    known = tuple(map(ref, constants))
    return _Counted(references, hidden - len(known), known, tuple(methods), holders + len(known))


def as_a_constant(kind: type) -> list[FunctionType]:
    """The functions with this class among their defaults, where these are no more than constants."""
    return [each for each in gc.get_objects() if type(each) is FunctionType and _is_given(kind, each)]


def _is_given(kind: type, function: FunctionType) -> bool:
    defaults = function.__defaults__
    return defaults is not None and any(value is kind for value in defaults) and _is_constant(defaults)


def _is_constant(holder: Any) -> bool:
    """A tuple of nothing but constants and classes of C: at its next turn, the collector no longer follows it."""
    return type(holder) is tuple and not any(map(gc.is_tracked, holder))


def _may_be_changed(kind: type) -> bool:
    """Not an object of C whose attributes nobody sets: each connection of psycopg has one for values of a class."""
    return kind in _OF_C or bool(kind.__dictoffset__ or kind.__flags__ & _OF_PYTHON)


def _is_key(kind: type, holder: Any) -> bool:
    """And no value. What is looked up by a type stays as it is."""
    return issubclass(type(holder), dict) and all(value is not kind for value in dict.values(holder))
