"""The contract of a hazard: what it does, how it proves that it fired, what it cannot touch, how it cleans up."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from django.db import connections

from loadtest.faults.scene import scaled
from loadtest.faults.scene.lease_guard import IN_TIME
from loadtest.faults.scene.occasion import Occasion
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.scene.site import Site
    from loadtest.faults.workers.crew import CrewWorker


#: seconds for each cell's worker to get inside
PARTY_ENTERS = 6.0


class Adversary(ABC):
    """Inflicts one hazard on real processes and servers. An object lives as long as the cells that one event strikes:
    one cell, or a `party`."""

    #: the name in commands, JSON and the matrix
    slug: ClassVar[str]
    #: the hazard, as claims name it
    word: ClassVar[Hazard]
    #: how many cells one event strikes together, at most
    party: ClassVar[int] = 1
    #: does it strike a server that other cells use? Then no cells of other hazards run at the same time
    alone: ClassVar[bool] = False
    #: how many of its events may then run at the same time
    abreast: ClassVar[int] = 1
    #: seconds that its longest cell takes, roughly: the longest start first
    lasts: ClassVar[float] = 5.0
    #: seconds; None: the shortest that the strategy's lock can have, for hazards that outlast the lease
    lease: ClassVar[float | None] = None
    #: does it bring its own Valkey? Then it strikes that one, and cannot touch a strategy that uses none
    own_valkey: ClassVar[bool] = False
    #: accounts of the book
    accounts: ClassVar[int] = 1
    #: settings of each book, in addition to those of every cell
    settings: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, cells: int = 1) -> None:
        self.occasion = Occasion(cells)

    def not_applicable(self, strategy: str, store: str) -> str | None:
        """Return why the hazard cannot touch `strategy` with its balances on `store`; None if it can."""
        return dependencies.no_valkey(strategy, store) if self.own_valkey else None

    def lease_of(self, strategy: str) -> float:
        """Return the lease of the strategy's lock in its cell, in seconds."""
        return self.lease or scaled.lease_of(strategy)

    def settings_of(self, strategy: str) -> Mapping[str, Any]:
        """Return the settings of the strategy's book, in addition to those of every cell."""
        return self.settings

    def missing(self) -> tuple[str, str] | None:
        """Return (reason, remedy) if this machine lacks what the hazard needs, else None."""
        return None

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        """Yield the servers of its cells: those of the whole run, unless the hazard needs its own."""
        yield shared

    @abstractmethod
    def strike(self, scene: Scene) -> None:
        """Inflict the hazard, and record the proof with `scene.prove`."""

    def settled(self, scene: Scene) -> None:  # noqa: B027  (most look at nothing more)
        """Called when every worker had its time: look at what could only be seen by then."""


class Party(Adversary):
    """A hazard that strikes a server: `event` happens once, while a worker of each cell is inside."""

    party = 8
    #: seconds that the rivals have before the struck worker continues and writes
    ahead: ClassVar[float] = 0.8
    #: does the event end the judge's own SQL sessions?
    cuts_sql: ClassVar[bool] = False

    def prepare(self, site: Site) -> None:
        """Called once, when all crowds are done and no worker is inside."""

    @abstractmethod
    def event(self, site: Site) -> str:
        """Called once, when all victims are inside. Returns what was seen of the event; "" if it did not happen."""

    def strike(self, scene: Scene) -> None:
        self.occasion.meet(lambda: self.prepare(scene.site))
        if (
            scene.book.store == "redis"
        ):  # at stake is not a lock but the balance: acknowledge some postings first
            scene.wait(scene.rush(1), 5)
        victim, refused = self.enters(scene)
        if not victim and not refused:
            return  # it is just slow (other cells that wait for it would lose their leases), or something else failed
        entered = time.monotonic()
        before = scene.held(victim) if victim else refused
        if self.cuts_sql:
            connections.close_all()
        scene.hazard_comes()
        seen = self.occasion.meet(lambda: self.event(scene.site))
        after = scene.held(victim) if victim else "nothing"
        if victim and time.monotonic() - entered > IN_TIME * scene.lease:
            scene.note("the event took nearly as long as the lease: from here on it would be an overrun")
            scene.go_on(victim)
            return
        if seen:
            scene.fault(seen)
            scene.prove(f"{seen}; before: {before}; after: {after}")
        self.aftermath(scene)
        if victim:
            scene.go_on(victim)

    def enters(self, scene: Scene) -> tuple[CrewWorker | None, str]:
        """Let one worker in. Return the worker and ""; or None and how it was refused ("" if it just did not get
        inside)."""
        worker = scene.hire()
        if victim := scene.victim(PARTY_ENTERS, worker):
            return victim, ""
        return None, "" if worker.busy else scene.turned_away(worker)

    def aftermath(self, scene: Scene) -> None:
        """Called between the event and the struck worker's write: the rivals want the account."""
        scene.ahead(self.ahead)
