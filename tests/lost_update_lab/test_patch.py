"""A replacement reaches every module that holds the original, also one that came or changed after the first harness."""

from __future__ import annotations

import copy
import copyreg
import pickle
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lost_update_lab.gates import clocks
from lost_update_lab.gates.patch import Patches


def replaced(module: ModuleType) -> bool:
    patches = Patches()
    patches.everywhere(time.sleep, print)
    patches.apply()
    try:
        return module.sleep is print  # type: ignore[attr-defined,no-any-return]
    finally:
        patches.undo()


def test_a_module_that_came_or_got_the_name_later_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    early, late = ModuleType("early"), ModuleType("late")
    early.sleep = time.sleep  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "early", early)
    monkeypatch.setitem(sys.modules, "late", late)
    assert replaced(early)
    assert early.sleep is time.sleep  # type: ignore[attr-defined]
    late.sleep = time.sleep  # type: ignore[attr-defined]
    assert replaced(late)
    assert replaced(early)


def test_a_class_that_is_made_meanwhile_has_no_method() -> None:
    """`timer = time.time`, as Django REST Framework's throttles have it, in a module that a worker imports first: the
    gate became a method, and was given `self`, for as long as the process lived."""
    patches = Patches()
    patches.everywhere(time.time, lambda: 42)
    patches.apply()
    try:

        class Throttle:
            timer = time.time

        assert Throttle().timer() == 42
    finally:
        patches.undo()
    assert Throttle().timer() == 42


LATE = """
import time
from datetime import datetime
from functools import singledispatch
from random import random

class Of(type):
    pass

class Field(metaclass=Of):
    at: datetime
    timer = time.time

class DatetimeField(Field, datetime):
    pass

class Due(datetime):
    pass

def wait(sleep=time.sleep, *, dates=datetime):
    pass

BY_TYPE = type("ByType", (datetime,), {})
KINDS = {datetime: "timestamptz"}

@singledispatch
def told(value):
    return "something else"

@told.register
def _(value: datetime):
    return "a time"
"""


@contextmanager
def clocks_in_place() -> Iterator[None]:
    patches = Patches()
    clocks.install(patches)
    patches.apply()
    try:
        yield
    finally:
        patches.undo()


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a module, for the first time."""
    (tmp_path / "of_late.py").write_text(LATE)
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda: import_module("of_late")
    sys.modules.pop("of_late", None)


@pytest.mark.deep
def test_a_module_that_is_loaded_meanwhile_makes_classes_of_datetimes(late: Any) -> None:
    """Tortoise ORM's fields do: their metaclass was at odds with that of the class that stands for `datetime`. Every
    datetime was taken for a `Due`, and SQLAlchemy did not know `Mapped[datetime]`."""
    with clocks_in_place():
        module, now = late(), datetime(2026, 3, 1)
        for kind in (module.DatetimeField, module.Due, module.BY_TYPE):
            assert issubclass(kind, datetime)
            assert type(kind.now()) is kind
            assert not isinstance(now, kind)
        assert module.KINDS[type(now)] == "timestamptz"
        assert module.told(now) == "a time"


@pytest.mark.deep
def test_nothing_is_left_in_a_module_that_was_loaded_meanwhile(late: Any) -> None:
    real = datetime
    with clocks_in_place():
        module = late()
        assert module.datetime is not real
    assert module.datetime is real
    assert "lost_update_lab" not in repr((module.random, vars(module.Field)))
    assert module.Due.__mro__[1] is module.Field.__annotations__["at"] is datetime
    assert module.Field.timer is time.time
    assert module.wait.__defaults__ == (time.sleep,)
    assert module.wait.__kwdefaults__["dates"] is datetime
    assert [name for name in vars(module.Due) if not name.startswith("__")] == []


@pytest.mark.deep
def test_datetimes_are_pickled_as_always() -> None:
    """`cache.set("at", timezone.now())`: a plain one could not be pickled at all, and another was pickled as the
    explorer's."""
    early, table = datetime(2026, 3, 1, tzinfo=UTC), dict(copyreg.dispatch_table)
    told = pickle.dumps(early)
    with clocks_in_place():
        for value in (
            early,
            datetime(2026, 3, 1, tzinfo=UTC),
            datetime.fromisoformat("2026-03-01T00:00:00Z"),
        ):
            assert type(value) is type(early)
            assert pickle.dumps(value) == told
            assert type(pickle.loads(told)) is type(early)
            assert copy.deepcopy(value) == value
    assert pickle.dumps(early) == told
    assert copyreg.dispatch_table == table


def test_what_is_inherited_is_so_again_after_undo() -> None:
    """A class kept its base's method as one of its own."""

    class Base:
        def method(self) -> int:
            return 1

    class Derived(Base):
        pass

    patches = Patches()
    patches.method(Derived, "method", lambda self: 2)
    assert Derived().method() == 2
    patches.undo()
    assert "method" not in vars(Derived)
    assert Derived().method() == 1
