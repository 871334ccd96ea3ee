"""The whole matrix: the controls first, then the cells, several at a time; those that strike shared servers alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

from ledger.strategies import CONTROL
from loadtest.faults import HAZARDS
from loadtest.faults.cell import Cell, as_json, close_connections, play
from loadtest.faults.crew import Pool
from loadtest.faults.site import Site
from loadtest.faults.touch import store_of
from loadtest.result import Result
from loadtest.words import Word


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is tried. `together`: how many cells at a time."""

    strategies: tuple[str, ...]
    hazards: tuple[str, ...]
    repeat: int = 1
    seed: int = 0
    together: int = 4

    def cells(self) -> list[Cell]:
        return [Cell(s, HAZARDS[h], self.seed) for h in self.hazards for s in self.strategies]

    def as_json(self) -> dict[str, Any]:
        return {
            "strategies": list(self.strategies),
            "hazards": list(self.hazards),
            "repeat": self.repeat,
            "seed": self.seed,
        }


def matrix(
    plan: Plan, site: Site, tick: Callable[[Cell], None] = lambda cell: None
) -> Iterator[dict[str, Any]]:
    """Yield the object of each cell as it comes. `tick` is told which cell begins."""
    pool, ended = Pool(), Event()
    controls: dict[tuple[str, str], Word] = {}
    cells = plan.cells()
    first = [each for each in cells if each.strategy == CONTROL]
    rest = [each for each in cells if each.strategy != CONTROL]

    def work(cell: Cell) -> dict[str, Any]:
        if ended.is_set():
            raise KeyboardInterrupt
        tick(cell)
        control = controls.get((cell.hazard.slug, cell.store))
        try:
            results = [play(cell, site, pool, control) for _ in range(plan.repeat)]
        finally:
            close_connections()
        gravest: Result = min(results, key=lambda each: each.word.gravity)
        if cell.strategy == CONTROL:
            controls[cell.hazard.slug, cell.store] = _control_word(cell, gravest, site, pool)
        return as_json(cell, gravest, [each.word for each in results])

    try:
        for batch in (_redis_controls(first, rest), first, rest):
            for alone in (False, True):
                some = [each for each in batch if each.alone is alone]
                for data in _several(work, some, 1 if alone else plan.together):
                    if batch is first or batch is rest:
                        yield data
    finally:
        ended.set()
        pool.close()


def _control_word(cell: Cell, result: Result, site: Site, pool: Pool) -> Word:
    """A control that the hazard cannot touch still shows whether the trial can tell: by its contention."""
    if result.word != Word.NOT_RUN:
        return result.word
    return play(replace(cell, strikes=False), site, pool, None).word


class RedisControl(Cell):
    """The control where the balances lie in Redis: not a row of the matrix, but what its rows are judged by."""

    @property
    def store(self) -> str:
        return "redis"


def _redis_controls(first: Sequence[Cell], rest: Sequence[Cell]) -> list[Cell]:
    wanted = {each.hazard for each in rest if store_of(each.strategy) == "redis"}
    return [RedisControl(CONTROL, each.hazard, each.seed) for each in first if each.hazard in wanted]


def _several(
    work: Callable[[Cell], dict[str, Any]], cells: Sequence[Cell], together: int
) -> Iterator[dict[str, Any]]:
    with ThreadPoolExecutor(max_workers=together) as threads:
        running: set[Future[dict[str, Any]]] = {threads.submit(work, each) for each in cells}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for each in done:
                    yield each.result()
        except BaseException:
            for each in running:
                each.cancel()
            with suppress(Exception):
                threads.shutdown(wait=False, cancel_futures=True)
            raise
