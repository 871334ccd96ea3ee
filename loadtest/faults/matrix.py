"""The whole matrix. The cells of one event together, several events at a time, those that strike shared servers alone;
the controls and the longest first. A cell that needs its hazard's control waits for it."""

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
from loadtest.faults.hazards import HAZARDS
from loadtest.faults.hazards.crash import CrashHolding
from loadtest.faults.play import play
from loadtest.faults.scene.site import Site
from loadtest.faults.workers.crew import Pool
from loadtest.trials import dependencies
from loadtest.trials.case import Judgement
from loadtest.verdict.words import Word

Party = tuple[Cell, ...]
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MatrixPlan:
    """What is tried. `singles`, `together`: how many events at a time, of those that strike one cell and of those that
    strike a party."""

    strategies: tuple[str, ...]
    hazards: tuple[str, ...]
    repeat: int = 1
    seed: int = 0
    singles: int = 12
    together: int = 6

    def cells(self) -> list[Cell]:
        return [Cell(s, HAZARDS[h], self.seed) for h in self.hazards for s in self.strategies]

    def servers(self) -> list[str]:
        """Return which servers its strategies want beyond PostgreSQL and Valkey: their start takes seconds."""
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
    """One run of a plan on `site`. `tick` is told which cells begin."""

    plan: MatrixPlan
    site: Site
    tick: Callable[[Party], None] = lambda cells: None
    pool: Pool = field(default_factory=Pool)
    ended: Event = field(default_factory=Event)
    #: (hazard, store) → the control's word; "" stands for contention alone, by which a control that the hazard
    #: cannot touch still shows whether the trial can tell
    controls: dict[tuple[str, str], Word] = field(default_factory=dict)
    #: set once the control against that hazard, on that store, has its word
    _due: dict[tuple[str, str], Event] = field(default_factory=dict)

    def run(self) -> Iterator[dict[str, Any]]:
        """Yield the JSON object of each cell as it comes."""
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
        """Yield what may run at the same time, and how many events of it: a single cell mostly waits."""
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
            gravest: Judgement = min(results, key=lambda each: each.word.gravity)
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
    """Return the cells in groups that one event can strike together."""
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
    order = list(HAZARDS.values())
    return order.index(cell.hazard), cell.store == "redis"


def matrix(
    plan: MatrixPlan, site: Site, tick: Callable[[Party], None] = lambda cells: None
) -> Iterator[dict[str, Any]]:
    """Yield the object of each cell as it comes."""
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
            ended.set()  # nobody begins anything more
            running = {each for each in running if not each.cancel()}
            log.warning("stopped: what is under way is waited for")
            for each in as_completed(running):
                with suppress(KeyboardInterrupt):  # it had not begun anything yet
                    yield each.result()
            raise
        except BaseException:
            ended.set()
            for each in running:
                each.cancel()
            with suppress(Exception):
                threads.shutdown(wait=False, cancel_futures=True)
            raise
