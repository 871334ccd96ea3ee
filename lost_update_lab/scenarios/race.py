"""A scenario written down line by line: `race.setup`, `race.worker`, `race.invariant`, `race.explore`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from lost_update_lab.scenarios.comparisons import is_redelivered, parts_of
from lost_update_lab.scenarios.exploration import Gone
from lost_update_lab.scenarios.explore import compare, replaying
from lost_update_lab.scenarios.isolation import Levels
from lost_update_lab.scenarios.progress import shown
from lost_update_lab.scenarios.result import Result
from lost_update_lab.under_test.arguments import check_setup, checked
from lost_update_lab.under_test.operations import Framework
from lost_update_lab.under_test.scenario import (
    Invariant,
    Scenario,
    Worker,
    invariants_of,
    limits_of,
    worker,
    workers_of,
)
from lost_update_lab.under_test.servers import Servers, choose

INSTEAD = "{gone}. Every order was searched in its place, and none breaks anything: {bounds}"
F = TypeVar("F", bound=Callable[..., Any])


class NotKept(AssertionError):
    """Some order breaks what must hold, or nothing could be decided. `result` says which, and how."""

    def __init__(self, result: Result) -> None:
        super().__init__(str(result))
        self.result = result


class Race:
    """`name`: the name of its results. `again`: how to see a schedule again, with `{id}` in it. `replay`: only this
    schedule. `terminal`: where progress is shown. `overrides`: bounds of the command line, which win over those of the
    scenario."""

    def __init__(
        self,
        name: str,
        *,
        servers: Callable[[], Servers] = choose,
        frameworks: Sequence[Framework] = (),
        patches: Sequence[Any] = (),
        again: str = "",
        replay: str = "",
        terminal: Callable[[], AbstractContextManager[Any]] = shown,
        **overrides: Any,
    ) -> None:
        self.name, self.again, self.overrides = name, again, overrides
        self.results: list[Result] = []
        self._servers = servers
        self._frameworks, self._patches = frameworks, patches
        self._replay, self._terminal = replay, terminal
        self._setups: list[Callable[..., Any]] = []
        self._workers: dict[str, Worker] = {}
        self._invariants: list[Invariant] = []
        self._always: list[Invariant] = []
        #: explore() was called
        self.asked = False

    def setup(self, function: F) -> F:
        """The function that puts the opening state there, and commits it. Also works as a decorator. Several, as of a
        fixture and of its test, run one after the other."""
        check_setup(function, "write race.setup(one_voucher), or race.setup(lambda: one_voucher('XMAS'))")
        self._setups.append(function)
        return function

    def worker(self, name: str, call: Callable[..., Any], *args: Any, **keywords: Any) -> None:
        """Add a caller, and what it does. With the same name again: what it does next."""
        before = self._workers.get(name)
        made = before.then(call, *args, **keywords) if before else worker(name, call, *args, **keywords)
        self._workers[name] = made

    def invariant(self, holds: Any, sentence: str = "") -> None:
        """What must hold after each schedule; `sentence` is true when it does not. Without one: some serial order."""
        self._invariants += invariants_of(holds, sentence)

    def always(self, holds: Any, sentence: str = "") -> None:
        """What must hold at each commit."""
        self._always += invariants_of(holds, sentence)

    def explore(
        self,
        *,
        pairs: Iterable[Any] = (),
        isolation: Levels = "",
        retry: Any = None,
        faults: int = 0,
        refusals: Sequence[type[BaseException]] = (),
        ignore: Sequence[str] = (),
        budget: float = 60.0,
        slack: float = 0.1,
        control: bool = True,
        deadlocks: bool = True,
        mutate: bool = False,
        disposable: bool = False,
        **each_fault: int,
    ) -> Result:
        """Run every order within the bounds. The arguments are those of `lost_update_lab.explore`.

        Raises NotKept with the smallest order that breaks something, or if nothing could be decided. Raises Mistake if
        the scenario cannot be explored as it is written."""
        self.asked = True
        given: dict[str, Any] = {
            "budget": budget,
            "slack": slack,
            "control": control,
            "deadlocks": deadlocks,
            "mutate": mutate,
            **limits_of(faults, each_fault),
        }
        given = checked(given, refusals, *self._setups, ignore=ignore, disposable=disposable)
        named, one_is_enough = self._workers.values(), given["faults"] or is_redelivered(retry)
        scenario = Scenario(
            name=self.name,
            workers=tuple(named) if pairs else workers_of(named, one_is_enough),
            invariants=tuple(self._invariants),
            always=tuple(self._always),
            **{**given, **self.overrides},
        )
        result = self._compared(parts_of(scenario, pairs, isolation), retry, disposable)
        self.results.append(result)
        if not result.kept:
            raise NotKept(result)
        return result

    def _compared(self, parts: Sequence[Scenario], retry: Any, disposable: bool) -> Result:
        with self._terminal() as progress:
            return compare(
                parts,
                self._servers(),
                retry=retry,
                disposable=disposable,
                frameworks=self._frameworks,
                patches=self._patches,
                replay=self._replay or replaying(),
                again=self.again,
                progress=progress,
            )

    def forgotten(self) -> str:
        """What is wrong if the test ends here. "": nothing."""
        if not self._workers or self.asked:
            return ""
        names = " and ".join(self._workers)
        return f"nothing was explored: race has {names}, and the test ends without race.explore()"

    def replay(self, schedule: str, **transitions: Any) -> Result:
        """Run only this schedule, by its id. Raises NotKept if it still breaks. If it no longer breaks anything, or no
        longer exists within these bounds, every order has to be kept: as a test, this fails until the code is fixed. A
        warning says that it no longer exists."""
        self._replay, gone = schedule, ""
        try:
            self.explore(**transitions)
        except Gone as error:
            gone = str(error)
        self._replay = ""
        result = self.explore(**transitions)
        if gone:
            warnings.warn(INSTEAD.format(gone=gone, bounds=result.bounds), stacklevel=2)
        return result
