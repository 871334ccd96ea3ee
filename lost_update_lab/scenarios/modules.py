"""State of the user's modules that survives a schedule: a worker stands for a process that has just begun."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType

from lost_update_lab.scenarios.lines import is_own

#: what a module keeps state in, of which a look shows whether it has changed
_PLAIN = (bool, int, float, str, bytes, tuple, list, dict, set, frozenset, type(None))


def state() -> Mapping[str, str]:
    """`module.name` → a text of what it holds now, of plain values in the user's modules and of their caches."""
    return {f"{module.__name__}.{name}": text for module in _own() for name, text in _held(module)}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(name for name, text in after.items() if before.get(name, text) != text)


def _own() -> Iterator[ModuleType]:
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and is_own(file):
            yield module


def _held(module: ModuleType) -> Iterator[tuple[str, str]]:
    for name, value in list(vars(module).items()):
        if name.startswith("__") or isinstance(value, FunctionType | ModuleType | type):
            continue
        if type(value) in _PLAIN:
            try:
                yield name, repr(value)[:10_000]
            except Exception:  # noqa: BLE001, S112  (a value that cannot show itself tells nothing)
                continue
        elif callable(info := getattr(value, "cache_info", None)):
            yield name, f"{info().currsize} cached"
