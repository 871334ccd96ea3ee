"""The path of a search: the decisions that lead to where it is, and what each of them left open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from loadtest.explorer.options import Kind, Option
from loadtest.explorer.run import Run
from loadtest.explorer.state import Moment
from loadtest.explorer.summaries import Footprint


class Noted(NamedTuple):
    """What finding the options leaves behind: where they are known, this is done in its place."""

    longest: int
    offered: tuple[tuple[bytes, int] | None, ...]
    fresh: bool
    touched: frozenset[str]
    #: where each worker is in the recording, and what was cut off
    places: tuple[tuple[Any, tuple[str, ...]], ...]

    @classmethod
    def of(cls, run: Run) -> Noted:
        offered = tuple(worker.offered for worker in run.workers)
        places = tuple((worker.node, worker.cuts) for worker in run.workers)
        fresh = any(task.fresh for task in run.tasks)
        return cls(run.longest, offered, fresh, frozenset(run.touched), places)

    def leave(self, run: Run) -> None:
        run.longest, run.touched = self.longest, set(self.touched)
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

    def leads_to_news(self) -> bool:
        """Will the option that is taken surely tell somebody what the recording has no answer to?"""
        option = self.options[self.taken]
        if option.kind is Kind.LOST_REPLY:
            node, cuts = self.noted.places[ord(option.who[0]) - ord("A")]
            return node is not None and not any(
                heard == "lost" and times == cuts for _, heard, times in node.told
            )
        if option.kind is Kind.FAILOVER:
            return any(
                node and not any(times[: len(cuts) + 1] == (*cuts, option.who) for _, _, times in node.told)
                for node, cuts in self.noted.places
            )
        return False


def noted(run: Run) -> tuple[dict[str, int], Noted]:
    return {name: server.version for name, server in run.servers.items()}, Noted.of(run)


def in_common(path: Sequence[Branch], before: Sequence[tuple[Noted, int]]) -> dict[str, int]:
    """Up to which versions the servers' contents are the same on this path as on the one before."""
    versions: dict[str, int] = {}
    for branch, (noted, taken) in zip(path, before, strict=False):
        if branch.noted is not noted:
            break
        versions = branch.versions
        if branch.taken != taken:
            break
    return versions
