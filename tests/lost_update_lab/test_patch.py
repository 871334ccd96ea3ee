"""A replacement reaches every module that holds the original, also one that came or changed after the first harness."""

from __future__ import annotations

import sys
import time
from types import ModuleType

import pytest

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
