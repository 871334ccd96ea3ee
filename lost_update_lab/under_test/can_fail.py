"""Can an invariant that returns nothing fail? One without an assertion cannot: somebody has forgotten `return`."""

from __future__ import annotations

import dis
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import CodeType, FunctionType, MethodType
from typing import Any

#: functions that are called by an invariant, which may assert for it: so deep
DEPTH = 3
_RAISES = frozenset({"LOAD_ASSERTION_ERROR", "RAISE_VARARGS", "LOAD_COMMON_CONSTANT"})
_ASSERTS = re.compile(r"assert|check|verif|ensure|expect|fail|raise|must|should|valid", re.IGNORECASE)


def can_fail(holds: Callable[..., Any]) -> bool:
    """Does it assert or raise, or call what may do so? True if its code cannot be read."""
    function = _function(holds)
    return function is None or _can_fail(function, DEPTH)


@cache
def _can_fail(function: FunctionType, depth: int) -> bool:
    codes = list(_codes(function.__code__))
    names = {name for code in codes for name in code.co_names}
    if any(map(_ASSERTS.search, names)) or any(
        step.opname in _RAISES for code in codes for step in dis.get_instructions(code)
    ):
        return True
    called = [each for name in names if isinstance(each := function.__globals__.get(name), FunctionType)]
    return depth > 0 and any(_can_fail(each, depth - 1) for each in called)


def _function(holds: Any) -> FunctionType | None:
    while isinstance(holds, partial | MethodType):
        holds = holds.func if isinstance(holds, partial) else holds.__func__
    if isinstance(holds, FunctionType):
        return holds
    called = vars(type(holds)).get("__call__")
    return called if isinstance(called, FunctionType) else None


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)
