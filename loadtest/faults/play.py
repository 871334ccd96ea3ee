"""Runs the cells that one event strikes together, and repeats each until its hazard has fired, up to a bound."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event

from django.db import close_old_connections, connections

from loadtest.faults.cell import Cell, CellWorkers, as_stated
from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.scene.site import Site, judged_on
from loadtest.faults.workers.crew import Pool
from loadtest.trials.case import JudgedCase, run, skipped
from loadtest.verdict.evidence import Doubt
from loadtest.verdict.judge import in_doubt
from loadtest.verdict.words import Word
from lost_update_lab.embedded.reaper import REAPER

log = logging.getLogger(__name__)
ATTEMPTS = 3  # at most, until the hazard has fired

#: the control's word for a cell
Control = Callable[[Cell], Word | None]
#: the result of each try of a cell; the last one counts
Tries = list[JudgedCase]


def play(
    cells: Sequence[Cell], shared: Site, pool: Pool, control: Control, ended: Event | None = None
) -> dict[Cell, Tries]:
    """Run cells of one hazard that fit into one party, and rerun those that decided nothing. Once `ended` is set,
    nothing is rerun: the last try counts."""
    tries: dict[Cell, Tries] = {each: [] for each in cells}
    for cell in cells:
        if lacking := cell.lacks():
            tries[cell].append(skipped(cell.case(), *lacking))
    rest = [each for each in cells if not tries[each]]
    while rest:
        for cell, result in _together(rest, shared, pool, control).items():
            tries[cell].append(result)
        over = ended is not None and ended.is_set()
        rest = [each for each in rest if not over and again(tries[each])]
    return tries


def again(tries: Tries) -> bool:
    """Whether the cell needs another try. A loss counts at once. A missed deadline may be the machine's fault. If it
    contradicts a claim, it must be missed twice. If the hazard has not fired, the try decides nothing, and is repeated
    like any such try."""
    last = tries[-1]
    late = last.word in (Word.STALLED, Word.REFUSED)
    fired = last.witness is not None and bool(last.witness.fired)
    stall = last.witness.stall if late and last.witness else None
    if stall and as_stated(stall, last.case):
        return False  # the hazard would never find a worker inside
    doubted = any(
        each.own for each in last.verdict.doubts
    )  # a doubt about the control is not: it had its own tries
    if doubted or (late and not fired):
        return len(tries) < ATTEMPTS
    return late and last.claimed and len(tries) < 2


def _together(cells: Sequence[Cell], shared: Site, pool: Pool, control: Control) -> dict[Cell, JudgedCase]:
    adversary = cells[0].hazard(len(cells))
    try:
        with ExitStack() as stack:
            site = stack.enter_context(adversary.site(shared))
            if cells[0].store == "redis" and site.valkey is not shared.valkey:
                stack.enter_context(judged_on(site))
            with ThreadPoolExecutor(len(cells)) as threads:
                runs = [threads.submit(_once, each, site, pool, control(each), adversary) for each in cells]
                return {cell: one.result() for cell, one in zip(cells, runs, strict=True)}
    except Exception as error:  # noqa: BLE001  (the servers failed: that decides nothing, and ends no other cell)
        return {each: _broken(each, error) for each in cells}


def _once(cell: Cell, site: Site, pool: Pool, control: Word | None, adversary: Adversary) -> JudgedCase:
    close_old_connections()
    try:
        with tempfile.TemporaryDirectory(prefix="lab-cell-") as folder, REAPER.clears(folder):
            callers = CellWorkers(cell, adversary, site, pool, Path(folder))
            try:
                return run(cell.case(), callers, control)
            finally:
                callers.leave()  # even if its book could not be opened, so that the others do not wait
    except Exception as error:  # noqa: BLE001  (unforeseen: that decides nothing)
        return _broken(cell, error)
    finally:
        connections.close_all()


def _broken(cell: Cell, error: Exception) -> JudgedCase:
    log.warning("%s × %s", cell.strategy, cell.hazard.slug, exc_info=error)
    cause = f"the cell itself failed: {type(error).__name__}: {error}"
    return JudgedCase(case=cell.case(), verdict=in_doubt(Doubt(cause, "run it again")))
