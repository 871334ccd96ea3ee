"""State of the user's modules that survives a schedule, although a worker stands for a process that has just begun.

Inspected: what the modules' globals hold, what those hold in turn (attributes, items), attributes of their classes and
functions, closures and defaults. Left out: clients and their pools, which the gates know, and the files of other tests
to which nothing refers. pytest has imported all of them. With hundreds, a look would come to its end (look.MOST) before
it comes to the user's own code; and small searches of this project's tests took 1.1 times the CPU time.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any

from lost_update_lab.runs.look import Look
from lost_update_lab.telling.lines import is_own


def state(root: str = "", first: Collection[str] = (), of: Iterable[ModuleType] | None = None) -> Look:
    """`module.name` → a text of what it holds now, in this thread. `root`: only modules below this name. `first`: the
    names of modules that are looked at before the others, as there is an end to it (look.MOST). `of`: these modules,
    and not all."""
    look, own = Look(), own_modules(root) if of is None else of
    for module in sorted(own, key=lambda each: each.__name__ not in first):
        look.at_module(module)
    return look


class Tests:
    """pytest's: the names of the modules of all tests that it has collected, and that of the test that runs; and of
    those where the operations under test are."""

    collected: Collection[str] = frozenset()
    running = ""
    under_test: Collection[str] = frozenset()


class _Own:
    """The user's modules below `root`, by name. They are looked for again after an import."""

    def __init__(self, root: str) -> None:
        self._root, self._of = root, (list[ModuleType](), "", Tests.under_test)
        self._own: list[ModuleType] = []

    def now(self) -> list[ModuleType]:
        of = list(sys.modules.values()), Tests.running, Tests.under_test
        if of != self._of:
            self._of, self._own = of, _without_other_tests([*self._found()])
        return self._own

    def _found(self) -> Iterator[ModuleType]:
        for name, module in sorted(sys.modules.items()):
            file = getattr(module, "__file__", None)
            below = not self._root or name == self._root or name.startswith(f"{self._root}.")
            if below and isinstance(file, str) and is_own(file):
                yield module


def _without_other_tests(own: list[ModuleType]) -> list[ModuleType]:
    others = {each.__name__: each for each in own if each.__name__ in Tests.collected}
    for name in (Tests.running, *Tests.under_test):
        others.pop(name, None)
    found = with_named([each for each in own if each.__name__ not in others], others)
    names = {each.__name__ for each in found}
    return [each for each in own if each.__name__ in names]


def with_named(modules: list[ModuleType], others: Mapping[str, ModuleType]) -> list[ModuleType]:
    """These modules, and those of the `others`, by name, that one of them names, or that one of those names."""
    found, left = list(modules), dict(others)
    for module in found:  # it grows meanwhile
        found += [left.pop(name) for name in named_in(module) & left.keys()]
    return found


def named_in(module: ModuleType) -> set[str]:
    """The modules of what its globals hold. A package has each of its modules that anybody has imported."""
    own = f"{module.__name__}."
    held = [each for each in vars(module).values() if not _is_module_of(each, own)]
    found = {each.__name__ for each in held if isinstance(each, ModuleType)}
    found |= {str(each.__module__) for each in held if isinstance(each, FunctionType | type)}
    return found | {str(type(each).__module__) for each in held}


def _is_module_of(value: Any, package: str) -> bool:
    return isinstance(value, ModuleType) and value.__name__.startswith(package)


_own = lru_cache(_Own)


def own_modules(root: str) -> list[ModuleType]:
    """Kept between two looks: to go through the thousands of loaded modules took 40 % of a search's CPU time."""
    return _own(root).now()
