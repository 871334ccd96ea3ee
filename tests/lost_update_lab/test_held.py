"""A replacement reaches every object that holds the original, and each has it back afterwards."""

from __future__ import annotations

import gc
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple
from weakref import ref

import psycopg
import pytest
from psycopg.adapt import PyFormat

from lost_update_lab.gates import held
from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs import garbage

Reads = Callable[[], Any]


#: a number, since threads of other tests may ask meanwhile; the real clocks of these tests answer with no int so small
ANOTHER = 1


def another() -> int:
    return ANOTHER


class Another(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return ANOTHER


@contextmanager
def replaced(name: str = "") -> Iterator[None]:
    """`name`: of one function of `time`. Nobody here may hold what is replaced."""
    patches = Patches()
    patches.everywhere(getattr(time, name or "time"), another)
    if not name:
        patches.everywhere(datetime, Another)
    patches.apply()
    try:
        yield
    finally:
        patches.undo()


class Service:
    def __init__(self, clock: Any) -> None:
        self.clock = clock


class Slim:
    __slots__ = ("clock",)

    def __init__(self, clock: Any) -> None:
        self.clock = clock


class Pair(NamedTuple):
    name: str
    clock: Any


@dataclass(frozen=True)
class Frozen:
    clock: Any


def instance(clock: Any) -> Reads:
    service = Service(clock)
    return lambda: service.clock()


def looked_into(clock: Any) -> Reads:
    """Its attributes are in a dict of their own by now."""
    service = Service(clock)
    assert vars(service)
    return lambda: service.clock()


def slots(clock: Any) -> Reads:
    slim = Slim(clock)
    return lambda: slim.clock()


def frozen(clock: Any) -> Reads:
    made = Frozen(clock)
    return lambda: made.clock()


def namespace(clock: Any) -> Reads:
    names = SimpleNamespace(clock=clock)
    return lambda: names.clock()


def in_dict(clock: Any) -> Reads:
    clocks = {"wall": clock}
    return lambda: clocks["wall"]()


def in_list(clock: Any) -> Reads:
    clocks = [clock]
    return lambda: clocks[0]()


def in_deque(clock: Any) -> Reads:
    clocks = deque([clock])
    return lambda: clocks[0]()


def in_set(clock: Any) -> Reads:
    clocks = {clock}
    return lambda: next(iter(clocks))()


def in_tuple(clock: Any) -> Reads:
    clocks = {"both": (clock, 1)}
    return lambda: clocks["both"][0]()


class Two(tuple[Any, ...]):
    @property
    def clock(self) -> Any:
        return self[1]


def in_tuple_of_ones_own(clock: Any) -> Reads:
    service = Service(Two(("wall", clock)))
    return lambda: service.clock.clock()


def as_key(clock: Any) -> Reads:
    """Whoever looks there has the replacement in its hand."""
    names = {clock: "wall"}
    return lambda: next(iter(names))()


def private_slot(clock: Any) -> Reads:
    held = Private(clock)
    return lambda: held.now()


class Private:
    __slots__ = ("__clock",)

    def __init__(self, clock: Any) -> None:
        self.__clock = clock

    def now(self) -> Any:
        return self.__clock()


def class_of_class(clock: Any) -> Reads:
    class Outer:
        class Inner:
            now = clock

    return lambda: Outer.Inner().now()


def in_named_tuple(clock: Any) -> Reads:
    service = Service(Pair("wall", clock))
    return lambda: service.clock.clock()


def closure(clock: Any) -> Reads:
    return lambda: clock()


def part(clock: Any) -> Reads:
    return partial(clock)


def argument_of_part(clock: Any) -> Reads:
    return partial(lambda given: given(), clock)


def keyword_of_part(clock: Any) -> Reads:
    return partial(lambda given: given(), given=clock)


def default(clock: Any) -> Reads:
    def asks(given: Any = clock) -> Any:
        return given()

    return asks


def class_in_function(clock: Any) -> Reads:
    class Local:
        at = staticmethod(clock)

    return lambda: Local.at()


def factory_of_dict(clock: Any) -> Reads:
    times: defaultdict[str, Any] = defaultdict(clock)
    return lambda: (times.clear(), times["now"])[1]


def factory_of_dataclass(clock: Any) -> Reads:
    @dataclass
    class Try:
        at: Any = field(default_factory=clock)

    return lambda: Try().at


HOLDERS = [
    instance,
    looked_into,
    slots,
    frozen,
    namespace,
    in_dict,
    in_list,
    in_deque,
    in_set,
    in_tuple,
    in_tuple_of_ones_own,
    as_key,
    private_slot,
    class_of_class,
    in_named_tuple,
    closure,
    part,
    argument_of_part,
    keyword_of_part,
    default,
    class_in_function,
    factory_of_dict,
    factory_of_dataclass,
]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    "kind", ["function", "method"]
)  # pytest itself would hold a clock as long as it runs
def test_whoever_holds_it_has_the_replacement(kind: str) -> None:
    """One look finds all of them."""
    clock = time.time if kind == "function" else datetime.now
    reads = {holder.__name__: holder(clock) for holder in HOLDERS}
    with replaced():
        assert {name for name, each in reads.items() if each() != ANOTHER} == set()
    assert {name for name, each in reads.items() if not isinstance(each(), float | datetime)} == set()


@pytest.mark.deep
def test_a_holder_that_takes_the_place_of_another_is_looked_for() -> None:
    """As many hold it as at the last look."""
    for _ in range(3):
        service = Service(time.time)
        with replaced():
            assert service.clock() == ANOTHER
        del service


@pytest.mark.deep
def test_a_holder_that_follows_one_that_cannot_be_replaced_is_looked_for() -> None:
    """As many hold it as at the last look, and they are others."""

    def look_with_a_variable() -> Any:
        clock = time.process_time
        with replaced("process_time"):
            return clock

    look_with_a_variable()
    service = Service(time.process_time)
    with replaced("process_time"):
        assert service.clock() == ANOTHER
    del service
    closed = frozenset([time.process_time])
    with replaced("process_time"):
        pass
    del closed
    service = Service(time.process_time)
    with replaced("process_time"):
        assert service.clock() == ANOTHER


def test_where_no_more_hold_it_nobody_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with replaced("process_time_ns"):
        pass
    looks: list[int] = []
    monkeypatch.setattr(held, "_replaced", lambda *_: looks.append(1) or ())
    with replaced("process_time_ns"):
        pass
    assert not looks
    service = Service(time.process_time_ns)
    with replaced("process_time_ns"):
        assert service.clock() != ANOTHER  # the control: it is held, and nobody looks
    assert looks


@pytest.mark.deep
@pytest.mark.parametrize("dict_of_its_own", [False, True])
def test_an_object_that_was_found_is_not_looked_for_again(
    monkeypatch: pytest.MonkeyPatch, dict_of_its_own: bool
) -> None:
    """A program that keeps a Console of rich, which holds two clocks, had each search look at all objects."""
    looks: list[int] = []

    def found_twice() -> ref[Service]:
        service = Service(time.thread_time)
        if dict_of_its_own:
            vars(service)
        with replaced("thread_time"):
            assert service.clock() == ANOTHER
        with monkeypatch.context() as patch:
            patch.setattr(held, "_replaced", lambda *_: looks.append(1) or ())
            with replaced("thread_time"):
                assert service.clock() == ANOTHER
        assert service.clock() != ANOTHER
        return ref(service)

    assert found_twice()() is None  # nobody has kept it
    assert not looks
    other = Service(time.thread_time)  # perhaps in its place
    with replaced("thread_time"):
        assert other.clock() == ANOTHER


@pytest.mark.deep
def test_an_object_that_is_frozen_is_found_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look for those that hold a class froze all again before the owner of these attributes was looked for."""
    service = Service(datetime.now)
    assert vars(service)
    with garbage.frozen():
        with replaced():
            assert service.clock() == ANOTHER
        monkeypatch.setattr(held, "_replaced", lambda *_: ())
        with replaced():
            assert service.clock() == ANOTHER  # without a look


@pytest.mark.deep
def test_a_class_of_a_user_is_so_the_second_time_too() -> None:
    """A function of C does not become a method of the class that holds it; one of Python would."""
    reads = class_of_class(time.time)
    for _ in range(2):
        with replaced():
            assert reads() == ANOTHER
    assert isinstance(reads(), float)


class Closed(dict[str, Any]):
    def __setitem__(self, name: str, value: Any) -> None:
        raise TypeError("not to be changed")


@pytest.mark.deep
def test_what_is_not_to_be_changed_stays() -> None:
    closed = Closed(clock=time.time)
    with replaced():
        pass
    assert closed["clock"] is time.time


def test_the_class_where_a_users_code_holds_it() -> None:
    class Settings:
        dates = datetime

        def now(self, dates: Any = datetime) -> Any:
            return dates.now(), self.dates.now()

    class Stamped(datetime):
        pass

    gc.collect()  # which no longer follows a tuple of nothing but classes of C
    with replaced():
        assert Settings().now() == (ANOTHER, ANOTHER)
    assert Settings.dates is datetime
    assert isinstance(Stamped.now(), Stamped)


@pytest.mark.deep
@pytest.mark.parametrize("hidden", [False, True])
def test_a_default_that_is_a_class_is_looked_for_once(monkeypatch: pytest.MonkeyPatch, hidden: bool) -> None:
    """A function that stays made each search look at all objects. `hidden`: the collector no longer shows it."""
    for _ in range(2):  # what other tests have left, and such a look, is not to make room for it
        gc.collect()
        with replaced():
            pass

    def now(dates: Any = datetime) -> Any:
        return dates.now()

    assert gc.is_tracked(now.__defaults__)
    if hidden:
        gc.collect()
        assert not gc.is_tracked(now.__defaults__)
    with replaced():
        assert now() == ANOTHER
    assert isinstance(now(), datetime)
    monkeypatch.setattr(held, "_replaced", lambda *_: ())
    with replaced():
        assert now() == ANOTHER  # without a look


@pytest.mark.deep
def test_arguments_of_a_method_stay() -> None:
    at = partial(datetime.now, UTC)
    with replaced():
        assert at() == ANOTHER
    assert at().tzinfo is UTC


def test_what_is_looked_up_by_the_class_is_no_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each connection of PyMySQL has such a dict, and each of psycopg an object of C that dumps times."""
    transformer = psycopg.adapt.Transformer()
    with replaced():
        pass
    looks: list[int] = []
    monkeypatch.setattr(held, "_replaced", lambda *_: looks.append(1) or ())
    texts = [{datetime: another}, {datetime: Service}]
    dumpers = [transformer.get_dumper(datetime(2020, 1, 1), form) for form in PyFormat]
    with replaced():
        pass
    assert texts
    assert [each.cls for each in dumpers] == [datetime] * len(dumpers)
    assert not looks
    holder = [datetime]
    with replaced():
        pass
    assert holder
    assert looks  # the control
