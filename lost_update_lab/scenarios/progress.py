"""How much of a search is left: an estimate, while it runs.

A depth-first search knows the tree only as far as it has been. So each alternative of a decision that was not tried yet
counts as large as those that were (Knuth, "Estimating the efficiency of backtrack programs", 1975). Each path that is
put off with a fault at its end counts as large as those before it. The reduction makes later parts smaller, so mostly
more is done than the estimate says. And a fault may open new paths, so the estimate may fall.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from lost_update_lab.search.search import Search

#: seconds between two looks
EVERY = 0.2
WIDTH = 24
CLEAR = "\r\x1b[2K"


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """`share`: the part of the search that is done by this estimate, 0 to 1. `seconds`: since it began."""

    name: str
    schedules: int
    share: float
    seconds: float

    def __str__(self) -> str:
        done = round(self.share * WIDTH)
        bar = "━" * done + "─" * (WIDTH - done)
        return f"{self.name}  {bar}  about {self.share:.0%} of the search, {self.schedules} schedules"


class Watched(Search):
    """A search that reports its progress."""

    name = ""
    #: called every so often
    tell: Callable[[SearchProgress], None]
    begun = told = 0.0
    #: the number of decisions on the present path that are fixed
    root = 0
    root_path: list[Any] | None = None
    #: the paths that were searched to their end, and the number of schedules of all of them
    paths = counted_before = 0

    @classmethod
    def of(cls, harness: Any, name: str, tell: Callable[[SearchProgress], None]) -> Watched:
        made = cls(harness)
        made.name, made.tell, made.begun, made.root_path = name, tell, time.monotonic(), made.path
        return made

    def _backtrack(self) -> bool:
        found = super()._backtrack()
        if self.path is not self.root_path:  # from now on another path, with a fault at its end
            self.root_path, self.root = self.path, len(self.path)
            self.paths, self.counted_before = self.paths + 1, self.result.schedules
        if (now := time.monotonic()) - self.told >= EVERY:
            self.told = now
            self.tell(SearchProgress(self.name, self.result.schedules, self.share(), now - self.begun))
        return found

    def share(self) -> float:
        """The estimate, 0 to 1."""
        here = share_of([(branch.taken, branch.last) for branch in self.path[self.root :]])
        done = max(self.result.schedules, 1)
        each = max(self.counted_before / self.paths, 1.0) if self.paths else 1.0
        current = max(done - self.counted_before, 1) * (1 / here - 1) if here else each
        return done / (done + current + each * self.fault_order.waiting)


def share_of(path: list[tuple[int, int]]) -> float:
    """How much of a tree lies before this path, if all alternatives of a decision are equally large. `path`: for each
    decision, the alternative that is taken, and the last one."""
    share, weight = 0.0, 1.0
    for taken, last in path:
        share += weight * taken / (last + 1)
        weight /= last + 1
    return share + weight


@contextmanager
def shown(stream: TextIO | None = None) -> Iterator[Callable[[SearchProgress], None] | None]:
    """Writes progress over itself on a terminal, and leaves nothing behind. None: this is not a terminal."""
    out = stream or sys.stderr
    if not out.isatty():
        yield None
        return

    def tell(progress: SearchProgress) -> None:
        out.write(f"{CLEAR}{progress}")
        out.flush()

    try:
        yield tell
    finally:
        out.write(CLEAR)
        out.flush()
