"""One cell of the matrix: one strategy against one hazard, as callers of a trial (loadtest/trial.py)."""

from __future__ import annotations

import logging
import shlex
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import close_old_connections, connections

from ledger.models import Book
from loadtest import history, workloads
from loadtest.availability import missing
from loadtest.faults import touch
from loadtest.faults.base import Adversary
from loadtest.faults.crew import Pool
from loadtest.faults.scene import Scene
from loadtest.faults.site import Site, judged_on
from loadtest.result import Result
from loadtest.trial import Trial, Witness, run, skipped
from loadtest.verdict import Verdict
from loadtest.words import Word

log = logging.getLogger(__name__)
ATTEMPTS = 3  # until it fired


@dataclass(frozen=True)
class Cell:
    """`attempt` numbers the repetitions: each has chances of its own out of the seed."""

    strategy: str
    hazard: type[Adversary]
    seed: int = 0
    strikes: bool = True

    @property
    def store(self) -> str:
        return touch.store_of(self.strategy)

    @property
    def alone(self) -> bool:
        """Must no other cell run meanwhile? Balances in the hazard's own Valkey move this whole process there."""
        return self.hazard.alone or (self.hazard.own_valkey and self.store == "redis")

    @property
    def command(self) -> str:
        option = "--lock" if ":" in self.strategy else "--strategy"
        words = ["--seed", str(self.seed), "--hazard", self.hazard.slug, option, self.strategy]
        return "python manage.py faults " + shlex.join(words)

    def trial(self) -> Trial:
        lease = self.hazard.lease or touch.lease_of(self.strategy)
        return Trial(
            strategy=self.strategy,
            workload=workloads.find("deposits"),
            store=self.store,
            adversary=self.hazard.slug,
            settings={
                "lease": float(lease),
                "poll": 0.02,
                "retries": 500,
                "think": [0.0, 0.0],
                "extra": touch.scaled(self.strategy, lease),
            },
            planned=frozenset({str(self.hazard.word)}),
        )


@dataclass
class Callers:
    """Who posts, and what happens to them."""

    cell: Cell
    adversary: Adversary
    site: Site
    pool: Pool
    folder: Path
    facts: dict[str, Any] = field(default_factory=dict)

    def __call__(self, trial: Trial, book: Book) -> Witness:
        scene = Scene(book, self.site, self.pool, self.folder, trial.settings["lease"], self.cell.seed)
        try:
            scene.crowd()
            if scene.stall is None and self.cell.strikes:
                self.adversary.strike(scene)
                scene.settle()
        finally:
            scene.leave()
        word = str(self.adversary.word)
        seconds = round(time.monotonic() - scene.began, 3)
        return Witness(
            history=history.read(self.folder),
            fired={word: scene.proof} if scene.proof else {},
            not_applicable={word: scene.cannot} if scene.cannot else {},
            stall=scene.stall,
            facts={"timeline": scene.timeline, "seconds": seconds},
        )


def play(cell: Cell, shared: Site, pool: Pool, control: Word | None) -> Result:
    """Run one cell until its hazard fired, or the bound is reached."""
    trial = cell.trial()
    if lacking := missing(cell.strategy, cell.store):
        return skipped(trial, *lacking)
    if cell.strikes and (why := cell.hazard().not_applicable(cell.strategy)):
        return skipped(trial, why)
    for _ in range(ATTEMPTS):
        result = _whatever_happens(cell, trial, shared, pool, control)
        if result.word != Word.INCONCLUSIVE:
            break
    return result


def _whatever_happens(cell: Cell, trial: Trial, shared: Site, pool: Pool, control: Word | None) -> Result:
    """One cell that breaks in a way that nobody thought of decides nothing, and ends no other cell."""
    try:
        return _once(cell, trial, shared, pool, control)
    except Exception as error:
        log.warning("%s × %s", cell.strategy, cell.hazard.slug, exc_info=True)
        cause = f"the cell itself failed: {type(error).__name__}: {error}"
        return Result(
            trial=trial, verdict=Verdict(word=Word.INCONCLUSIVE, cause=cause, remedy="run it again")
        )


def _once(cell: Cell, trial: Trial, shared: Site, pool: Pool, control: Word | None) -> Result:
    adversary = cell.hazard()
    close_old_connections()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lab-cell-")))
        site = stack.enter_context(adversary.site(shared))
        if trial.store == "redis" and site.valkey is not shared.valkey:
            stack.enter_context(judged_on(site))
        return run(trial, Callers(cell, adversary, site, pool, folder), control)


def close_connections() -> None:
    """At the end of a thread that played cells."""
    connections.close_all()


def as_json(cell: Cell, result: Result, words: list[Word]) -> dict[str, Any]:
    """Return the result's object with the fields of a cell. `words`: of all repetitions."""
    data = result.as_json()
    return {
        **data,
        "hazard": cell.hazard.slug,
        "word": str(cell.hazard.word),
        "seed": cell.seed,
        "command": cell.command,
        "runs": [str(each) for each in words],
    }
