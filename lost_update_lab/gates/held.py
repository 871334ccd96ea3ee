"""Replace a function where objects hold it, and no module: those that were made before the explorer began.

    class Lease:
        def __init__(self, clock=time.time): self.clock = clock
    LEASE = Lease()                                              an instance
    CLOCKS = {"wall": time.time}                                 a dict, a list, a set, a tuple
    class Try: at: float = field(default_factory=time.time)      a dataclass, by a closure
    NOW = partial(time.time); now = datetime.now                 a partial; a method of a class

The garbage collector knows who holds what. To ask it for all of them takes 50 ms in a process of 90,000 objects, and
0.4 s in this lab's own tests. So it is asked only if more hold a function (sys.getrefcount) or a class
(class_holders.py) than at the last look, apart from the classes, functions, closures and objects that were found then.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import Field
from functools import partial
from operator import setitem
from types import BuiltinMethodType, CellType, FrameType, FunctionType, GeneratorType
from typing import Any
from weakref import WeakKeyDictionary, ref

from lost_update_lab.gates import class_holders
from lost_update_lab.runs import garbage
from lost_update_lab.telling.lines import is_own

#: id of a function, or a class → itself, and what to put in its place
Wanted = Mapping[int, tuple[Any, Any]]
#: puts back what was there, which is its last argument
Undo = partial[Any]
_OURS = f"{__name__.partition('.')[0]}."
_HANDED_OVER = f"{_OURS}under_test."
_CONTAINERS = (dict, list, tuple, set, CellType, partial, WeakKeyDictionary)
#: so deep are the explorer's own containers, and one more
_LEVELS = 6
#: functions of the real clock that a class makes anew each time that they are asked for
_METHODS = ("now", "utcnow")
#: id of a function → how many held it when its holders were last looked for, besides those of which it is known
_left: dict[int, int] = {}
#: each thread that sleeps holds it. One that is not replaced is noticed (runs/hang.py)
_BUSY = {id(time.sleep)}
#: the ids of a holder that cannot be replaced, and of what it holds. One that was there before is taken to stay: else
#: each search would look for whoever comes in its place
Held = tuple[int, int]
_lasting: set[Held] = set()
#: what is likely to be there the next time: holders that keep nothing alive but code
_known: list[Undo] = []
#: … and objects, which are not kept alive, by id and the name of an attribute: rich's Console holds two clocks
_objects: dict[tuple[int, str], ref[Any]] = {}
_OF_CODE = (type, FunctionType, CellType, Field, staticmethod, classmethod)


def replace(wanted: Wanted, besides: Iterable[object] = ()) -> list[Undo]:
    """Returns how to undo it. `besides`: tuples of the caller's own that hold what is replaced."""
    own = {id(wanted), *map(id, wanted.values()), *map(id, besides)}
    done, loose = list(_again(wanted)), set[Held]()
    counts = _held_by(wanted, done, own)
    looks = any(count > _left.get(key, 0) for key, count in counts.items() if key not in _BUSY)
    if looks:
        with garbage.thawed():
            done += list(_replaced(wanted, done, loose, own))
            counts = _held_by(wanted, done, own)
            _objects.update(_found_again(done))
    _known.extend(each for each in done if _is_code(each.args[0]))
    loose |= _in_frames(wanted)
    goes = Counter(value for _, value in loose - _lasting)
    if looks:  # those that are gone leave their ids to others
        _lasting.difference_update([each for each in _lasting if each[1] in wanted])
    _lasting.update(loose)
    _left.update({key: count - goes[key] for key, count in counts.items()})
    return done


def _in_frames(wanted: Wanted) -> set[Held]:
    """What the variables of functions hold that are being executed. Those that hold a class are not counted."""
    found: set[Held] = set()
    functions = {key for key, (original, _) in wanted.items() if not isinstance(original, type)}
    for each in sys._current_frames().values():
        frame: FrameType | None = each
        while frame:
            if not str(frame.f_globals.get("__name__")).startswith(_OURS):
                values = map(id, frame.f_locals.values())
                found |= {(id(frame), key) for key in values if key in functions}
            frame = frame.f_back
        del each  # this very function's own would hold itself
    return found


def _is_code(holder: Any) -> bool:
    return isinstance(holder, _OF_CODE) or (type(holder) is dict and "__spec__" in holder)


def _held_by(wanted: Wanted, done: list[Undo], own: set[int]) -> dict[int, int]:
    """How many hold each of them, besides those to which it was given back, and `own`."""
    back = Counter(id(part) for each in done for part in (each.args[-1], *_parts(each.args[-1])))
    counts = {key: sys.getrefcount(original) - back[key] for key, (original, _) in wanted.items()}
    kept = own | {id(each.args) for each in (*done, *_known)}
    for key, count in counts.items():
        if isinstance(kind := wanted[key][0], type):
            counts[key] = class_holders.count(kind, count, back, kept)
    return counts


def _parts(value: Any) -> tuple[Any, ...]:
    if isinstance(value, BuiltinMethodType):
        return (value.__self__,)
    return tuple(part for each in value for part in (each, *_parts(each))) if isinstance(value, tuple) else ()


def _found_again(done: list[Undo]) -> Iterator[tuple[tuple[int, str], ref[Any]]]:
    """The objects among the holders, and those of which a dict has the attributes."""
    dicts = [each.args[0] for each in done if each.func is _put_back and type(each.args[0]) is dict]
    objects: dict[int, Any] = {}
    for each in gc.get_referrers(*dicts) if dicts else ():
        with suppress(AttributeError):  # not each has attributes
            objects[id(object.__getattribute__(each, "__dict__"))] = each
    for undo in done:
        owner = undo.args[0] if undo.func is object.__setattr__ else objects.get(id(undo.args[0]))
        if type(owner).__weakrefoffset__:
            yield (id(owner), undo.args[1]), ref(owner)


def _again(wanted: Wanted) -> Iterator[Undo]:
    for key, found in list(_objects.items()):
        owner, name = found(), key[1]
        if owner is None:
            del _objects[key]
            continue
        value = getattr(owner, name, None)
        if (new := _instead(value, wanted, _is_of_a_user(owner))) is not value:
            with suppress(AttributeError, TypeError):
                object.__setattr__(owner, name, new)
                yield partial(object.__setattr__, owner, name, value)
    known = _known.copy()
    _known.clear()
    for each in known:
        holder, name, value = each.args[0], each.args[1], each.args[-1]
        classes, is_dict = isinstance(value, type) or _may_hold_classes(holder), isinstance(holder, dict)
        new = _instead(value, wanted, classes)
        if new is value:
            _known.append(each)  # of another look
        elif (holder.get(name) if is_dict else getattr(holder, name, None)) is value:
            new = staticmethod(new) if isinstance(holder, type) else new
            (setitem if is_dict else each.func)(holder, name, new)
            yield partial(_put_back, holder, name, new, value) if is_dict else each


def _instead(value: Any, wanted: Wanted, classes: bool = False) -> Any:
    """What to put in the place of this value; itself, if it may stay. `classes`: as a class may, where it is looked up
    by whoever has to do with types."""
    if id(value) in wanted:
        return value if isinstance(value, type) and not classes else wanted[id(value)][1]
    if isinstance(value, BuiltinMethodType) and id(value.__self__) in wanted and value.__name__ in _METHODS:
        return getattr(wanted[id(value.__self__)][1], value.__name__)
    if isinstance(value, tuple):
        made = [_instead(each, wanted, classes) for each in value]
        if any(new is not old for new, old in zip(made, value, strict=True)):
            return _like(value, made)
    return value


def _like(value: tuple[Any, ...], made: list[Any]) -> tuple[Any, ...]:
    new = tuple.__new__(type(value), made)
    if hasattr(value, "__dict__"):
        vars(new).update(vars(value))
    return new


def _replaced(wanted: Wanted, done: list[Undo], loose: set[Held], own: set[int]) -> Iterator[Undo]:
    """`done`: what was replaced already, which holds the originals. `loose`: gets what is held where it cannot be
    replaced."""
    values = [original for original, _ in wanted.values()]
    classes = [each for each in values if isinstance(each, type)]
    methods = [each for each in gc.get_referrers(*classes) if _instead(each, wanted) is not each]
    values = [each for each in (*values, *methods) if not isinstance(each, tuple)]
    own = own | {
        id(values),
        id(methods),
        id(classes),
        *map(id, done),
        *(id(each.args) for each in (*done, *_known)),
    }
    holders = [each for each in gc.get_referrers(*values) if id(each) not in own]
    ours = _ours(holders)
    holders = [each for each in holders if id(each) not in ours]
    tuples = [each for each in holders if isinstance(each, tuple)]
    own |= {id(holders), id(tuples)}
    holders += [each for each in gc.get_referrers(*tuples) if id(each) not in own] if tuples else []
    for kind in classes:  # one that is there twice is done by then
        holders += class_holders.as_a_constant(kind)
    for holder in holders:
        if not (isinstance(holder, FrameType | GeneratorType | tuple) or _is_of_python(holder)):
            found = list(_put(holder, wanted))
            held = {id(each) for each in gc.get_referents(holder) if not (found or isinstance(each, type))}
            loose |= {(id(holder), each) for each in held & wanted.keys()}
            yield from found


def _put(holder: Any, wanted: Wanted) -> Iterator[Undo]:
    """Replace what this object holds."""
    if type(holder) is dict and (owner := _class_of(holder)):
        if not (_is_ours(owner) or _is_of_python(owner)):
            yield from _in_names(owner, holder, wanted, staticmethod)
    elif isinstance(holder, dict | list | deque):
        if type(holder) is dict and any(_instead(key, wanted) is not key for key in holder):
            yield partial(_fill, holder, tuple(holder.items()))
            _fill(holder, tuple((_instead(key, wanted), value) for key, value in holder.items()))
        for place, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if (new := _instead(value, wanted)) is not value:
                with suppress(Exception):  # one that is not to be changed
                    holder[place] = new
                    yield partial(_put_back, holder, place, new, value)
        yield from _in_names(holder, _attributes(holder), wanted)
    elif isinstance(holder, set):
        for value in list(holder):
            if (new := _instead(value, wanted)) is not value:
                holder.remove(value)
                holder.add(new)
                yield partial(_exchange, holder, new, value)
    elif isinstance(holder, staticmethod | classmethod):
        if (new := _instead(holder.__func__, wanted)) is not (value := holder.__func__):
            _renew(holder, "__func__", new)
            yield partial(_renew, holder, "__func__", value)
    elif isinstance(holder, partial):
        before: Any = holder.__reduce__()[2]
        func, args, *rest = before
        after = _instead(func, wanted), _instead(args, wanted), *rest
        if after[0] is not func or after[1] is not args:
            holder.__setstate__(after)  # type: ignore[attr-defined]
            yield partial(holder.__setstate__, before)  # type: ignore[attr-defined]
    else:
        yield from _in_names(holder, _attributes(holder), wanted)


def _renew(holder: Any, _: str, value: Any) -> None:
    """Its function is read-only."""
    holder.__init__(value)


def _in_names(
    holder: Any, names: Mapping[str, Any], wanted: Wanted, wraps: Callable[[Any], Any] = lambda new: new
) -> Iterator[Undo]:
    sets = setattr if isinstance(holder, type | FunctionType | CellType) else object.__setattr__
    own = _may_hold_classes(holder)
    for name, value in list(names.items()):
        if (new := _instead(value, wanted, classes=own)) is not value:
            with suppress(AttributeError, TypeError):  # read-only, as a property's own
                sets(holder, name, wraps(new))
                yield partial(sets, holder, name, value)


def _attributes(holder: Any) -> dict[str, Any]:
    if isinstance(holder, FunctionType):
        return {"__defaults__": holder.__defaults__}
    if isinstance(holder, CellType):
        return {"cell_contents": holder.cell_contents}
    if isinstance(holder, defaultdict):
        return {"default_factory": holder.default_factory}
    slots = [name for kind in type(holder).__mro__ for name in _slots(kind)]
    found = {name: getattr(holder, name) for name in slots if hasattr(holder, name)}
    return found | (vars(holder) if hasattr(holder, "__dict__") else {})


def _slots(kind: type) -> Iterable[str]:
    slots: str | Iterable[str] = vars(kind).get("__slots__", ())
    found = [slots] if isinstance(slots, str) else [each for each in slots if isinstance(each, str)]
    private = f"_{kind.__name__.lstrip('_')}"
    plain = [each for each in found if not each.endswith("__")]
    return [f"{private}{each}" if each.startswith("__") else each for each in plain]


def _class_of(namespace: dict[str, Any]) -> type | None:
    """The class whose namespace this is."""
    if "__module__" not in namespace or "__spec__" in namespace:
        return None
    owners = [each for each in gc.get_referrers(namespace) if isinstance(each, type)]
    return next((each for each in owners if gc.get_referents(vars(each))[0] is namespace), None)


def _fill(holder: dict[Any, Any], items: tuple[tuple[Any, Any], ...]) -> None:
    """In place, and in this order."""
    holder.clear()
    holder.update(items)


def _put_back(holder: Any, place: Any, new: Any, value: Any) -> None:
    with suppress(Exception):
        if holder[place] is new:
            holder[place] = value


def _exchange(holder: set[Any], new: Any, value: Any) -> None:
    if new in holder:
        holder.remove(new)
        holder.add(value)


def _ours(holders: list[Any]) -> set[int]:
    """Those that the explorer holds itself, through containers."""
    known, front = {id(each): each for each in holders}, holders
    for _ in range(_LEVELS):  # this very function holds them, in containers that are new each time
        if not (containers := [each for each in front if _is_container(each)]):
            break
        own = {id(front), id(containers), *known}
        front = [each for each in gc.get_referrers(*containers) if id(each) not in own]
        known |= {id(each): each for each in front if not isinstance(each, FrameType)}
    found, behind = set[int](), [each for each in known.values() if _is_ours(each)]
    while behind:
        found |= {id(each) for each in behind}
        inside = [each for each in gc.get_referents(*behind) if id(each) in known.keys() - found]
        behind = [each for each in inside if _is_container(each) or id(each) in {id(one) for one in holders}]
    known.clear()  # it holds itself by now
    return found


def _is_container(holder: Any) -> bool:
    """The names of a module are not: whose they are is known, and each of its functions refers to them."""
    return isinstance(holder, _CONTAINERS) and not (type(holder) is dict and "__spec__" in holder)


def _is_ours(holder: Any) -> bool:
    """What a user has handed over is not ours: `worker("A", pay, time.time)`."""
    if isinstance(holder, type | FunctionType):
        name = str(holder.__module__)
    elif type(holder) is dict and "__spec__" in holder:  # the names of a module
        name = f"{holder.get('__name__')}."
    else:
        name = type(holder).__module__
    return name.startswith(_OURS) and not name.startswith(_HANDED_OVER)


def _may_hold_classes(holder: Any) -> bool:
    """May a class that it holds be replaced, too? Others may look something up by it."""
    return isinstance(holder, CellType) or _is_of_a_user(holder)


def _is_of_a_user(holder: Any) -> bool:
    """A class, a function, or an object of a class, whose code is neither Python's nor a package's."""
    name = holder.__module__ if isinstance(holder, type | FunctionType) else type(holder).__module__
    return is_own(getattr(sys.modules.get(str(name)), "__file__", None) or "<")


def _is_of_python(holder: Any) -> bool:
    """A class or a function of the standard library: it keeps no lease."""
    return (
        isinstance(holder, type | FunctionType)
        and holder.__module__.partition(".")[0] in sys.stdlib_module_names
    )
