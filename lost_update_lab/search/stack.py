"""The path of a search: the decisions that lead to where it is, and what each of them left open."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.runs.in_memory_run import InMemoryRun
from lost_update_lab.schedule.pending import Seen
from lost_update_lab.schedule.state import Moment
from lost_update_lab.schedule.world import Chooser, World
from lost_update_lab.search.independence import Footprint

#: for each worker: where its threads are in the recording (none: it has ended), what was cut off, and the servers that
#: it uses
Places = tuple[tuple[dict[str, Any], tuple[str, ...], frozenset[str]], ...]


@dataclass(slots=True)
class Branch:
    """One decision on the path: the transitions that there were, and which of them is being explored."""

    transitions: tuple[Transition, ...]
    taken: int
    last: int  # the last one to explore; equals `taken` when there is nothing to branch over
    watched: dict[bytes, int]
    versions: dict[str, int]  # of what the servers hold
    places: Places
    key: bytes = b""
    shape: bytes = b""
    moment: Moment | None = None
    footprints: tuple[Footprint | None, ...] = ()
    at: int = 0  # µs of virtual time
    #: the run as it stood here, from which others go on
    checkpoint: InMemoryRun | None = None

    def passed(self, world: World) -> None:
        """A run passes this decision on its way."""
        if isinstance(world, InMemoryRun):
            if self.checkpoint is None and len(self.transitions) > 1:
                self.checkpoint = world.copy()
        else:
            self.versions = _versions(world)

    def gone_on(self, choose: Chooser) -> InMemoryRun | None:
        """The run that stood here, to go on with what `choose` takes."""
        if self.checkpoint is None or self.leads_to_news() is not None:
            return None
        twin = self.checkpoint.copy()
        twin.choose = choose
        return twin

    def leads_to_news(self) -> int | None:
        """Will this transition surely tell a worker something that the recording does not know? Returns its number."""
        if self.taken > self.last:
            return None
        transition = self.transitions[self.taken]
        if transition.kind is Kind.LOST_REPLY:
            number = ord(transition.who[0]) - ord("A")
            nodes, cuts, _ = self.places[number]
            node = nodes.get(transition.who)
            known = node is None or any(_lost(heard) and times == cuts for heard, times, _ in node.told)
            return None if known else number
        if transition.kind is Kind.FAILOVER:
            for number, (nodes, cuts, uses) in enumerate(self.places):
                then = (*cuts, transition.who)
                told = [times[: len(then)] for node in nodes.values() for _, times, _ in node.told]
                if nodes and transition.who in uses and then not in told:
                    return number
        return None


def _lost(heard: Hashable) -> bool:
    return (heard.what if isinstance(heard, Seen) else heard) == "lost"


def noted(world: World) -> tuple[dict[str, int], Places]:
    """Return what a branch notes of the world: the versions of what the servers hold, and where the workers are."""
    places = tuple(
        ({t.name: t.node for t in w.tasks if t.node and not w.finished}, w.cuts, frozenset(w.sessions))
        for w in world.workers
    )
    return {} if isinstance(world, InMemoryRun) else _versions(world), places


def _versions(world: World) -> dict[str, int]:
    return {name: server.version for name, server in world.servers.items()}


def in_common(path: Sequence[Branch], before: Sequence[tuple[Places, int]]) -> dict[str, int]:
    """Up to which versions the servers' contents are the same on this path as on the one before."""
    versions: dict[str, int] = {}
    for branch, (places, taken) in zip(path, before, strict=False):
        if branch.places is not places:
            break
        versions = branch.versions
        if branch.taken != taken:
            break
    return versions
