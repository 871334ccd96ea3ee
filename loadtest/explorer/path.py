"""The path of a search: the decisions that lead to where it is, and what each of them left open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from loadtest.explorer.options import Option
from loadtest.explorer.run import Run
from loadtest.explorer.state import Moment
from loadtest.explorer.summaries import Footprint


class Noted(NamedTuple):
    """What finding the options leaves behind: where they are known, this is done in its place."""

    longest_lease: int
    offered: tuple[bytes | None, ...]
    fresh: bool
    touched: frozenset[str]

    @classmethod
    def of(cls, run: Run) -> Noted:
        offered = tuple(worker.offered for worker in run.workers)
        return cls(run.longest_lease, offered, any(task.fresh for task in run.tasks), frozenset(run.touched))

    def leave(self, run: Run) -> None:
        run.longest_lease, run.touched = self.longest_lease, set(self.touched)
        for worker, offered in zip(run.workers, self.offered, strict=True):
            worker.offered = offered
        for task in run.tasks if not self.fresh else ():
            task.fresh = False


@dataclass(slots=True)
class Branch:
    """One decision on the path: how many options there were, which is being explored."""

    options: tuple[Option, ...]
    taken: int
    last: int  # the last one to explore; == taken when there is nothing to branch over
    watched: dict[bytes, int]
    versions: dict[str, int]  # of what the servers hold
    noted: Noted
    key: bytes = b""
    shape: bytes = b""
    moment: Moment | None = None
    footprints: tuple[Footprint | None, ...] = ()


def noted(run: Run) -> tuple[dict[str, int], Noted]:
    return {name: server.version for name, server in run.servers.items()}, Noted.of(run)
