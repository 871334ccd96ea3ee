"""One cell of the matrix, one strategy against one hazard: the callers of a case (loadtest/trials/case.py)."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ledger.models import Book
from ledger.strategies import find
from loadtest.faults.answers import overdue, unserved
from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.scene import scaled
from loadtest.faults.scene.record import with_loss
from loadtest.faults.scene.scene import FEW, POSTINGS, STUCK, Scene
from loadtest.faults.scene.site import Site
from loadtest.faults.withdrawals import Withdrawals
from loadtest.faults.workers.crew import Pool
from loadtest.history import calls as history
from loadtest.trials import dependencies
from loadtest.trials.availability import missing
from loadtest.trials.case import JudgedCase, TrialCase, Witness
from loadtest.verdict.evidence import Doubt, Stall
from loadtest.workloads.deposits import Deposits
from locks.hazards import Hazard

#: where a repeated cell writes its results, so that those of the whole matrix stay
AGAIN = "report/again"
#: processes that want a core, for each core of the machine; the matrix itself causes two or three
STARVED = 8


@dataclass(frozen=True)
class Cell:
    """`on`: the store, if it is not the one on which the matrix tries the strategy. `strikes`: False for a control
    that shows, by contention alone, that the trial can detect a loss."""

    strategy: str
    hazard: type[Adversary]
    seed: int = 0
    strikes: bool = True
    on: str = ""

    @property
    def store(self) -> str:
        return self.on or dependencies.store_of(self.strategy)

    @property
    def alone(self) -> bool:
        """Whether no other cell may run meanwhile. If the balances are in the hazard's own Valkey, this whole process
        has to move there."""
        return self.hazard.alone or (self.hazard.own_valkey and self.store == "redis")

    @property
    def command(self) -> str:
        option = "--lock" if ":" in self.strategy else "--strategy"
        words = [
            "--seed",
            str(self.seed),
            "--output",
            AGAIN,
            "--hazard",
            self.hazard.slug,
            option,
            self.strategy,
        ]
        return "python manage.py faults " + shlex.join(words)

    def lacks(self) -> tuple[str, str] | None:
        """Return (reason, remedy) if the cell cannot run: a server is missing, or the hazard does not apply."""
        adversary = self.hazard()
        if lacking := missing(self.strategy, self.store, private=True) or (
            adversary.missing() if self.strikes else None
        ):
            return lacking
        why = adversary.not_applicable(self.strategy, self.store) if self.strikes else None
        return (why, "") if why else None

    def crowds(self, case: TrialCase) -> int:
        """Return how many times each worker of the crowd posts."""
        proven = self.strikes and ":" not in self.strategy and str(Hazard.CONTENTION) in case.withstands
        return FEW if proven else POSTINGS

    def case(self) -> TrialCase:
        adversary = self.hazard()
        lease = adversary.lease_of(self.strategy)
        return TrialCase(
            strategy=self.strategy,
            workload=(Withdrawals if find(self.strategy).gates_withdrawals else Deposits)(
                self.hazard.accounts
            ),
            store=self.store,
            adversary=self.hazard.slug,
            settings={
                "lease": float(lease),
                "poll": 0.04,
                "retries": 500,
                "think": [0.0, 0.0],
                "extra": scaled.scaled(self.strategy, lease),
                **adversary.settings_of(self.strategy),
            },
            planned=frozenset({str(self.hazard.word)}),
        )


@dataclass
class CellWorkers:
    """The workers of the cell, and the hazard that strikes them."""

    cell: Cell
    adversary: Adversary
    site: Site
    pool: Pool
    folder: Path
    #: has this cell left its event? Then no other cell waits for it
    left: bool = False

    def __call__(self, case: TrialCase, book: Book) -> Witness:
        lease = case.settings["lease"]
        scene = Scene(
            book, self.site, self.pool, self.folder, lease, self.cell.seed, withdraws=bool(case.floors)
        )
        try:
            if self.happens(scene, case):
                scene.settle()
                self.adversary.settled(scene)
        finally:
            scene.leave()
        standstill = scene.standstill()
        calls = history.read(self.folder).calls
        late = overdue(calls)
        alone = unserved(calls, scene.before, scene.inside) if scene.proof else []
        stall, doubts = weighed(measured(scene.stall, standstill), case)
        word = str(self.adversary.word)
        seconds = round(time.monotonic() - scene.began, 3)
        return Witness(
            history=history.read(self.folder),
            before=scene.before,
            fired={word: scene.proof} if scene.proof and not late else {},
            not_applicable={word: scene.cannot} if scene.cannot and not scene.proof else {},
            stall=stall,
            doubts=(*doubts, *scene.doubts, *late, *alone),
            facts={
                "began": scene.opened.isoformat(),
                "timeline": scene.timeline,
                "clocks": scene.clocks,
                "seconds": seconds,
                "deadlocks": scene.deadlocks(),
                "stalled_s": round(standstill.seconds, 3) if standstill else 0.0,
                "recovered": standstill is None or standstill.recovered,
            },
        )

    def happens(self, scene: Scene, case: TrialCase) -> bool:
        """Return whether the hazard struck. The other cells of the event have workers inside by then, under leases, so
        they must not wait until this one has settled."""
        try:
            scene.crowd(self.cell.crowds(case))
            strikes = scene.stall is None and self.cell.strikes
            if strikes:
                scene.hazard_comes()
                self.adversary.strike(scene)
            return strikes
        finally:
            self.leave()

    def leave(self) -> None:
        if not self.left:
            self.left = True
            self.adversary.occasion.leave()


def as_stated(stall: Stall, case: TrialCase) -> bool:
    """Whether this is the stall that the strategy's page describes: under contention alone, which it does not claim."""
    return stall.sentence == STUCK and str(Hazard.CONTENTION) not in case.withstands


def measured(stall: Stall | None, standstill: Stall | None) -> Stall | None:
    """Return the stall with the seconds for which the clients stood still, if that is longer than the judge waited."""
    longer = stall and standstill and standstill.seconds > stall.seconds and not standstill.recovered
    return replace(stall, seconds=standstill.seconds) if stall and standstill and longer else stall


def weighed(stall: Stall | None, case: TrialCase) -> tuple[Stall | None, tuple[Doubt, ...]]:
    """Return the stall, or a doubt instead of it: on an overloaded machine every deadline passes."""
    if stall is None or as_stated(stall, case) or not (why := starved()):
        return stall, ()
    return None, (Doubt(f"{stall.sentence}; but {why}", "run it again on a quieter machine"),)


def starved() -> str:
    """Return why a missed deadline proves nothing on this machine; "" if it is not overloaded."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    return f"the load is {load:.0f} on {cores} cores" if load > STARVED * cores else ""


def as_json(cell: Cell, result: JudgedCase, runs: list[list[JudgedCase]]) -> dict[str, Any]:
    """Return the result's JSON object with the fields of a cell. `runs`: the tries of each repetition."""
    data = result.as_json()
    return {
        **data,
        **(with_loss(data) if "timeline" in data else {}),
        "hazard": cell.hazard.slug,
        "word": str(cell.hazard.word),
        "seed": cell.seed,
        "command": cell.command,
        "runs": [str(tries[-1].word) for tries in runs],
        "tries": [[str(each.word) for each in tries] for tries in runs],
        "tried_again": [each.verdict.cause for tries in runs for each in tries[:-1]],
    }
