"""The gates of time and chance: a worker's clocks are virtual, and its random numbers the same in every run."""

from __future__ import annotations

import builtins
import copyreg
import datetime as _datetime
import hashlib
import os
import pickle
import random
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any, TypeVar
from uuid import UUID

from lost_update_lab.gates.invariant_clock import InvariantClock
from lost_update_lab.gates.patch import Patches
from lost_update_lab.model.bounds import MONOTONIC
from lost_update_lab.model.chance import forms
from lost_update_lab.model.effects import DRAW, LOOK, NOBODY, STAMP, WALL
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.runs.place import Here, anywhere, here
from lost_update_lab.schedule import cached_names, random_choice, retries

T = TypeVar("T")
#: the numbers of clocks, where the system has them
_WALL, _STEADY = (
    {getattr(time, f"CLOCK_{name}", -1) for name in names}
    for names in (("REALTIME", "TAI"), ("MONOTONIC", "MONOTONIC_RAW", "BOOTTIME", "UPTIME_RAW", "UPTIME"))
)

#: modules (by the beginnings of their names) that only write down the time; a system adds its own through its gates
STAMPS: tuple[str, ...] = ("django.db.models.fields",)
#: modules (likewise) whose times only people read. Their clocks stand still, or each moment would be a state of its
#: own. Django's module takes the time of BEGIN and COMMIT for its log
DIARIES: tuple[str, ...] = ("django.db.backends.utils",)

#: modules (likewise) that ask for the process only to notice a fork, and then drop what they have
FORK_AWARE: tuple[str, ...] = ("filelock._api", "filelock._async_read_write")

#: modules that compute something from random numbers on behalf of others
ASK_FOR_OTHERS = frozenset({"os", "random", "secrets", "uuid"})

_real_datetime = _datetime.datetime
_sleep, _time, _monotonic = time.sleep, time.time, time.monotonic
_gmtime, _localtime = time.gmtime, time.localtime
_ctime, _asctime, _strftime, _times = time.ctime, time.asctime, time.strftime, os.times
_build_class = builtins.__build_class__
_clock_gettime, _clock_gettime_ns = time.clock_gettime, time.clock_gettime_ns
_urandom, _getpid, _uuid1, _hash = os.urandom, os.getpid, uuid.uuid1, hash
_seed = random.seed
#: the random numbers of the module; and what its functions come to, also one that a closure has kept (`random.choice`)
_source: Any = random.random.__self__  # type: ignore[attr-defined]
_asked_last = {name: getattr(_source, name) for name in ("random", "getrandbits", "_randbelow")}


def sleep(seconds: float) -> None:
    if place := here():
        place.run.wait(place.task, NOBODY, float(seconds), f"sleep {seconds:g} s")
    else:
        _sleep(seconds)


def _noted(place: Here, clock: str) -> None:
    place.run.begin_to_look(place.task, clock)
    if place.run.recorder:
        place.run.recorder.effect(place.task, clock)


def monotonic() -> float:
    if place := here():
        if _in(DIARIES, sys._getframe(1)):
            return MONOTONIC
        _noted(place, LOOK)
        place.task.history.look(place.run.now)
        return MONOTONIC + place.run.now / 1e6
    return _monotonic()


def _wall(place: Here, look: str) -> float:
    """What the worker's wall clock shows, in seconds. A stamp is only written down: it is no part of what the worker
    knows, unless each look is shown another time."""
    InvariantClock.virtual = True
    _noted(place, look)
    place.run.wall_clock_read |= look == WALL
    shows = place.run.look(place.task)
    if look == WALL or place.run.distinct_times:
        place.task.history.look(shows)
    return Epoch.shows + shows / 1e6


def wall() -> float:
    if place := here():
        return _wall(place, WALL)
    InvariantClock.note(sys._getframe(1))
    return _time()


def monotonic_ns() -> int:
    return round(monotonic() * 1e9)


def wall_ns() -> int:
    return round(wall() * 1e9)


def gmtime(seconds: float | None = None) -> time.struct_time:
    return _gmtime(wall() if seconds is None else seconds)


def localtime(seconds: float | None = None) -> time.struct_time:
    return _localtime(wall() if seconds is None else seconds)


def clock_gettime(clock: int) -> float:
    """The clocks of the CPU are real: no lease goes by them."""
    if here() is None:
        return _clock_gettime(clock)
    if clock in _WALL:
        return wall()
    return monotonic() if clock in _STEADY else _clock_gettime(clock)


def clock_gettime_ns(clock: int) -> int:
    known = here() is not None and clock in (*_WALL, *_STEADY)
    return round(clock_gettime(clock) * 1e9) if known else _clock_gettime_ns(clock)


def ctime(seconds: float | None = None) -> str:
    return _ctime(wall() if seconds is None else seconds)


def asctime(parts: Any = None) -> str:
    return _asctime(localtime() if parts is None else parts)


def strftime(form: str, parts: Any = None) -> str:
    return _strftime(form, localtime() if parts is None else parts)


def times() -> os.times_result:
    """Of the CPU, and the time that has passed by the steady clock."""
    *of_cpu, elapsed = _times()
    return os.times_result((*of_cpu, elapsed if here() is None else monotonic()))


class _Meta(type):
    """It is taken for `datetime` itself, also where something is looked up by it (`{datetime: "timestamptz"}`)."""

    def __new__(mcs, name: str, bases: tuple[type, ...], names: dict[str, Any], **keywords: Any) -> Any:
        """Also for a class that no class statement makes: `type("Due", (datetime,), {})`."""
        if any(isinstance(each, _Meta) for each in bases):
            plain = tuple(_real_datetime if isinstance(each, _Meta) else each for each in bases)
            return type(plain[0])(name, plain, names, **keywords)
        return super().__new__(mcs, name, bases, names)

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        return _real_datetime(*args, **keywords)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _real_datetime)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _real_datetime)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is _real_datetime

    def __hash__(cls) -> int:
        return _hash(_real_datetime)


class Datetime(_real_datetime, metaclass=_Meta):
    """datetime whose `now` is the worker's. It makes plain datetimes, and they are pickled under its name, which is
    theirs. A call is a look at the wall clock, except from modules that only write the time down."""

    __module__, __qualname__ = _real_datetime.__module__, _real_datetime.__qualname__

    @classmethod
    def now(cls, tz: _datetime.tzinfo | None = None) -> Any:
        place = here()
        if place is None:
            InvariantClock.note(sys._getframe(1))
            return _real_datetime.now(tz)
        if _in(DIARIES, sys._getframe(1)):
            return _real_datetime.fromtimestamp(Epoch.shows, tz)
        if not _in(STAMPS, sys._getframe(1)):
            return _real_datetime.fromtimestamp(wall(), tz)
        return _real_datetime.fromtimestamp(_wall(place, STAMP), tz)

    @classmethod
    def today(cls) -> Any:
        return cls.now()

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(_datetime.UTC).replace(tzinfo=None)


def _pickled(value: _datetime.datetime) -> tuple[Any, ...]:
    """As always. (pickle looks for the class by its name, and would find another one there.)"""
    return Datetime, value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)[1]


def _now(cls: Any, tz: _datetime.tzinfo | None = None) -> Any:
    """`now` of a user's own class of datetimes, which is Python's."""
    return cls.fromtimestamp(wall(), tz)


def _subclasses(kind: type[_datetime.datetime]) -> Iterator[type[_datetime.datetime]]:
    each: type[_datetime.datetime]
    for each in type.__subclasses__(kind):
        if each is not Datetime:
            yield each
            yield from _subclasses(each)


def _tell_now(kind: Any, patches: Patches) -> None:
    with suppress(TypeError):  # one that is written in C
        if getattr(kind.now, "__func__", None) is None:  # it has none of its own
            patches.method(kind, "now", classmethod(_now))


def _builds(patches: Patches) -> Callable[..., Any]:
    """For class statements. A class of datetimes that is made meanwhile, as by a module that a worker imports, is one
    of Python's own: beside `_Meta`, another base could have no metaclass, and it would be there after the search."""

    def build_class(body: Any, name: str, /, *bases: Any, **keywords: Any) -> Any:
        plain = [_real_datetime if each is Datetime else each for each in bases]
        made = _build_class(body, name, *plain, **keywords)
        if isinstance(made, type) and issubclass(made, _real_datetime):
            _tell_now(made, patches)
        return made

    return build_class


def _in(modules: tuple[str, ...], frame: FrameType | None) -> bool:
    """Is the time asked for in one of these modules? `timezone.now` is Django's name for `datetime.now`."""
    if frame and frame.f_globals["__name__"] == "django.utils.timezone":
        frame = frame.f_back
    return frame is not None and frame.f_globals["__name__"].startswith(modules)


def urandom(size: int) -> bytes:
    place = anywhere()
    return _urandom(size) if place is None else _draw(place, sys._getframe(1), "", "randbytes", size)


def uuid1(node: int | None = None, clock_seq: int | None = None) -> UUID:
    """Made from the time and from random numbers, in C: no other gate sees it."""
    place = anywhere()
    if place is None:
        return _uuid1(node, clock_seq)
    return UUID(int=_draw(place, sys._getframe(1), "", "getrandbits", 128), version=1)


def getpid() -> int:
    place = anywhere()
    if place is None or _in(FORK_AWARE, sys._getframe(1)):
        return _getpid()
    return place.task.worker.pid


def seed(a: Any = None, version: int = 2) -> None:
    if (place := anywhere()) is None:
        return _seed(a, version)
    return place.task.worker.chance.seeded(a)


def hashed(value: object) -> int:
    """Of a text, another number in each worker: each Python process has a hash seed of its own. A `__hash__` asks for
    sets and dicts, whose own way to the number is no gate's."""
    place = anywhere()
    if place is None or not _is_text(value) or sys._getframe(1).f_code.co_name == "__hash__":
        return _hash(value)
    told = hashlib.blake2b(repr((place.task.worker.pid, value)).encode(), digest_size=8).digest()
    return int.from_bytes(told, "big", signed=True) >> 3  # within 61 bits, as Python's


def _is_text(value: object) -> bool:
    kinds = {type(each) for each in value} if type(value) is tuple else {type(value)}
    return bool(kinds & {str, bytes}) and kinds <= {str, bytes, int, float, bool}


def _drawn(name: str, original: Any) -> Any:
    def draw(*args: Any, **keywords: Any) -> Any:
        place = anywhere()
        if place is None:
            return original(*args, **keywords)
        seed = place.task.worker.chance.seed
        return _draw(place, sys._getframe(1), seed, name, *args, **keywords)

    return draw


def _draw(place: Here, frame: FrameType | None, seed: str, name: str, *args: Any, **keywords: Any) -> Any:
    """What the worker's random numbers come to by this method, for the code that asks there."""
    while frame and frame.f_globals.get("__name__") in ASK_FOR_OTHERS:
        frame = frame.f_back
    asks = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}" if frame else ""
    source = place.task.worker.draws(asks, seed)
    value = getattr(source, name)(*args, **keywords)
    random_choice.drew(place.task, asks, source.bits)
    drawn = forms(value)
    cached_names.note(place.run, place.task, frame, drawn)
    retries.draw(place.task, drawn)
    if place.run.recorder:
        place.run.recorder.effect(place.task, DRAW, drawn)
    return value


def install(patches: Patches) -> None:
    patches.everywhere(time.sleep, sleep)
    patches.everywhere(time.time, wall)
    patches.everywhere(time.time_ns, wall_ns)
    patches.everywhere(time.monotonic, monotonic)
    patches.everywhere(time.monotonic_ns, monotonic_ns)
    patches.everywhere(time.perf_counter, monotonic)
    patches.everywhere(time.perf_counter_ns, monotonic_ns)
    patches.everywhere(time.gmtime, gmtime)
    patches.everywhere(time.localtime, localtime)
    patches.everywhere(time.ctime, ctime)
    patches.everywhere(time.asctime, asctime)
    patches.everywhere(time.strftime, strftime)
    patches.everywhere(time.clock_gettime, clock_gettime)
    patches.everywhere(time.clock_gettime_ns, clock_gettime_ns)
    patches.everywhere(os.times, times)
    patches.everywhere(_real_datetime, Datetime)
    for kind in _subclasses(_real_datetime):
        _tell_now(kind, patches)
    patches.method(builtins, "__build_class__", _builds(patches))
    patches.entry(copyreg.dispatch_table, _real_datetime, _pickled)
    patches.everywhere(os.urandom, urandom)
    patches.everywhere(uuid.uuid1, uuid1)
    patches.everywhere(os.getpid, getpid)
    patches.method(builtins, "hash", hashed)
    for name in random.__all__:
        bound = getattr(random, name)
        if getattr(bound, "__self__", None) is not None and name not in ("seed", "getstate", "setstate"):
            patches.everywhere(bound, _drawn(name, bound))
    patches.everywhere(random.seed, seed)
    for name, original in _asked_last.items():
        patches.method(_source, name, _drawn(name, original))
