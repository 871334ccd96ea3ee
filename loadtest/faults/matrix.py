"""The whole matrix. The cells of one event run together, and several events run at a time. Events that strike shared
servers run alone. Controls and the longest cells come first. A cell that needs its hazard's control waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from threading import Event
from typing import Any

from ledger.strategies import CONTROL
from loadtest.faults.cell import Cell, as_json
from loadtest.faults.hazards import ADVERSARIES
from loadtest.faults.hazards.crash import CrashHolding
from loadtest.faults.play import play
from loadtest.faults.scene.site import Site
from loadtest.faults.workers.crew import Pool
from loadtest.trials import dependencies
from loadtest.trials.case import JudgedCase
from loadtest.verdict.words import Word

Party = tuple[Cell, ...]
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MatrixPlan:
    """What to try. How many events run at a time: `singles` of those that strike one cell, `together` of those that
    strike a party."""

    strategies: tuple[str, ...]
    hazards: tuple[str, ...]
    repeat: int = 1
    seed: int = 0
    singles: int = 12
    together: int = 6

    def cells(self) -> list[Cell]:
        return [Cell(s, ADVERSARIES[h], self.seed) for h in self.hazards for s in self.strategies]

    def servers(self) -> list[str]:
        """Return the servers that its strategies need besides PostgreSQL and Valkey. Each takes seconds to start."""
        slugs = {each.strategy for each in self.cells()}
        wanted = ["mariadb"] * any(dependencies.store_of(each) == "mariadb" for each in slugs)
        return wanted + ["zookeeper"] * any("zookeeper" in dependencies.asked(each) for each in slugs)

    def as_json(self) -> dict[str, Any]:
        return {
            "strategies": list(self.strategies),
            "hazards": list(self.hazards),
            "repeat": self.repeat,
            "seed": self.seed,
        }


@dataclass
class Matrix:
    """One run of a plan on `site`. `tick` is called with the cells that begin."""

    plan: MatrixPlan
    site: Site
    tick: Callable[[Party], None] = lambda cells: None
    pool: Pool = field(default_factory=Pool)
    ended: Event = field(default_factory=Event)
    #: (hazard, store) → the control's word. The hazard "" stands for contention alone: by it, a control that the hazard
    #: cannot touch still shows whether the trial can detect a loss
    controls: dict[tuple[str, str], Word] = field(default_factory=dict)
    #: set once the control has its word for that hazard and store
    _due: dict[tuple[str, str], Event] = field(default_factory=dict)

    def run(self) -> Iterator[dict[str, Any]]:
        """Yield each cell's JSON object as soon as it is known."""
        cells = self.plan.cells()
        first = [each for each in cells if each.strategy == CONTROL]
        rest = [each for each in cells if each.strategy != CONTROL]
        self._due = {(each.hazard.slug, each.store): Event() for each in first}
        stores = {each.store: None for each in cells if not each.lacks()}
        calm = [Cell(CONTROL, CrashHolding, self.plan.seed, strikes=False, on=store) for store in stores]
        try:
            for _ in self._all(parties(calm)):
                pass
            yield from self._all(parties(first) + parties(rest))
        finally:
            self.ended.set()
            self.pool.close()

    def _all(self, groups: list[Party]) -> Iterator[dict[str, Any]]:
        for some, together in self._lots(groups):
            for each in _several(self._work, some, together, self.ended):
                yield from each
            self.pool.dismiss()

    def _lots(self, groups: list[Party]) -> Iterator[tuple[list[Party], int]]:
        """Yield groups that may run at the same time, and how many at a time (many, because a cell mostly waits)."""
        groups = sorted(groups, key=lambda each: (each[0].strategy != CONTROL, -each[0].hazard.lasts))
        shared = [each for each in groups if not each[0].alone]
        yield [each for each in shared if each[0].hazard.party == 1], self.plan.singles
        yield [each for each in shared if each[0].hazard.party > 1], self.plan.together
        alone = sorted((each for each in groups if each[0].alone), key=_kind_of)
        for _, some in groupby(alone, key=_kind_of):
            same = list(some)
            yield same, same[0][0].hazard.abreast

    def _work(self, cells: Party) -> list[dict[str, Any]]:
        try:
            return self._played(cells)
        finally:
            for cell in cells:
                if cell.strategy == CONTROL and cell.strikes:
                    self._due[cell.hazard.slug, cell.store].set()

    def _played(self, cells: Party) -> list[dict[str, Any]]:
        self.tick(cells)
        runs = []
        for _ in range(self.plan.repeat):
            if self.ended.is_set():
                raise KeyboardInterrupt
            runs.append(play(cells, self.site, self.pool, self._control, self.ended))
        told = []
        for cell in cells:
            results = [each[cell][-1] for each in runs]
            gravest: JudgedCase = min(results, key=lambda each: each.word.gravity)
            if cell.strategy == CONTROL:
                name = cell.hazard.slug if cell.strikes else ""
                self.controls[name, cell.store] = gravest.word
            told.append(as_json(cell, gravest, [each[cell] for each in runs]))
        return told

    def _control(self, cell: Cell) -> Word | None:
        due = self._due.get((cell.hazard.slug, cell.store))
        if due and cell.strategy != CONTROL:
            due.wait()
        calm = self.controls.get(("", cell.store))
        word = self.controls.get((cell.hazard.slug, cell.store), calm)
        return calm if word == Word.NOT_RUN else word


def parties(cells: Iterable[Cell]) -> list[Party]:
    """Group the cells that one event can strike together."""
    found: list[Party] = []
    for (hazard, _), some in groupby(
        sorted(cells, key=_kind), key=lambda each: (each.hazard, each.store == "redis")
    ):
        group = [each for each in some if not each.lacks()]
        found += [tuple(group[n : n + hazard.party]) for n in range(0, len(group), hazard.party)]
    known = {each for group in found for each in group}
    lacking = [each for each in cells if each not in known]
    return [(each,) for each in lacking] + found


def _kind_of(cells: Party) -> int:
    return _kind(cells[0])[0]


def _kind(cell: Cell) -> tuple[int, bool]:
    order = list(ADVERSARIES.values())
    return order.index(cell.hazard), cell.store == "redis"


def matrix(
    plan: MatrixPlan, site: Site, tick: Callable[[Party], None] = lambda cells: None
) -> Iterator[dict[str, Any]]:
    """Yield each cell's JSON object as soon as it is known."""
    yield from Matrix(plan, site, tick).run()


def _several(
    work: Callable[[Party], list[dict[str, Any]]], groups: Sequence[Party], together: int, ended: Event
) -> Iterator[list[dict[str, Any]]]:
    with ThreadPoolExecutor(max_workers=together) as threads:
        running: set[Future[list[dict[str, Any]]]] = {threads.submit(work, each) for each in groups}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for each in done:
                    yield each.result()
        except KeyboardInterrupt:
            ended.set()  # nothing new may begin
            running = {each for each in running if not each.cancel()}
            log.warning("stopped: waiting for the cells that are under way")
            for each in as_completed(running):
                with suppress(KeyboardInterrupt):  # it had not begun yet
                    yield each.result()
            raise
        except BaseException:
            ended.set()
            for each in running:
                each.cancel()
            with suppress(Exception):
                threads.shutdown(wait=False, cancel_futures=True)
            raise
