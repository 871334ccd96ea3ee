"""The course of a soak: open the books, start the clients, strike and import at the planned counts, wait, judge."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from django.db import connections

from ledger.books import open_book
from ledger.strategies import CONTROL
from loadtest.history import calls
from loadtest.soak.aim import at_work, has_in_hands, in_the_hands_of
from loadtest.soak.crowd import ClientDied, Crowd
from loadtest.soak.imports import ImportedFiles, finished
from loadtest.soak.judgement import SoakCase, as_json, case_of, completed, judged, shortfall
from loadtest.soak.plan import AIMED, BACKGROUND, SoakPlan
from loadtest.soak.service import Service
from loadtest.soak.strikes import Strike, strike
from loadtest.verdict.evidence import Doubt
from loadtest.verdict.words import Word

SETTINGS = {"think": [0.0, 0.002], "retries": 50}
CARELESS = "select-for-update"
#: seconds without any completed posting after which the soak is aborted
QUIET = 150.0
WHOLE = 120.0


@dataclass
class Soak:
    """One soak. `tell` gets a sentence for each event."""

    plan: SoakPlan
    service: Service
    folder: Path
    tell: Callable[[str], None]
    strikes: list[Strike] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    #: seconds from the first posting to the last
    took: float = 0.0
    #: postings that the clients have reported
    done: int = 0

    def run(self) -> list[dict[str, Any]]:
        """Run the soak. Returns the result of each book, the two controls first."""
        cases = [
            self.open(CONTROL),
            self.open(CARELESS, careful=False),
            *map(self.open, self.plan.strategies),
        ]
        files = ImportedFiles(self.plan.lines, self.plan.accounts, self.plan.seed)
        try:
            with Crowd(self.orders(cases)) as crowd:
                self.course(crowd, files, cases)
            if not finished([each.book for each in cases]):
                self.tell("some imports have not finished")
            if not self.service.whole(WHOLE):
                self.doubts.append(Doubt("the service is not complete again", f"look at {self.service.log}"))
        finally:
            self.service.stop()
            connections.close_all()
        return self.judge(files, cases)

    def open(self, strategy: str, *, careful: bool = True) -> SoakCase:
        accounts = ((f"A{number:04d}", 0, None) for number in range(1, self.plan.accounts + 1))
        book = open_book(strategy, accounts, name="soak", values=SETTINGS)
        return case_of(self.plan, strategy, book, self.folder / str(book.pk), careful=careful)

    def orders(self, cases: list[SoakCase]) -> list[dict[str, Any]]:
        """Return the order for each client process: to post to all books alike."""
        plan = self.plan
        books = [
            {"id": str(t.book.pk), "name": str(t.book.pk)[:8], "folder": str(t.folder), "careful": t.careful}
            for t in cases
        ]
        common = {"host": "127.0.0.1", "port": self.service.port, "books": books, "callers": plan.callers}
        common |= {"accounts": plan.accounts, "seed": plan.seed, "drop": plan.drop}
        return [{**common, "number": number} for number in range(plan.processes)]

    def course(self, crowd: Crowd, files: ImportedFiles, cases: list[SoakCase]) -> None:
        chance = random.Random(self.plan.seed)  # noqa: S311  (not a secret)
        begun = time.monotonic()
        until = begun + (self.plan.at_most or inf)
        try:
            for event in self.plan.events():
                self.wait(crowd, event.count, until)
                if time.monotonic() >= until:
                    break
                if event.kind:
                    self.strike(event.kind, chance, crowd.done, files, cases)
                    self.tell(f"{crowd.done:,} postings: SIGKILL to {event.kind} {self.strikes[-1].pid}")
                else:
                    files.start([each.book for each in cases])
                    self.tell(f"{crowd.done:,} postings: file {files.count} into each book")
            self.wait(crowd, self.plan.end(crowd.done), until)
            crowd.stop()
            self.wait(crowd, inf)  # until all have ended
            self.took = time.monotonic() - begun
        except (TimeoutError, ClientDied) as error:
            self.tell(str(error))
            self.doubts.append(Doubt(f"aborted: {error}", f"look at {self.service.log}"))
        self.done = crowd.done

    def strike(
        self, kind: str, chance: random.Random, done: int, files: ImportedFiles, cases: list[SoakCase]
    ) -> None:
        """Strike one process. AIMED ones are struck while they work for a book under test, each book in turn."""
        subjects = [each.book for each in cases[-len(self.plan.strategies) :]]
        turn = sum(each.kind == kind for each in self.strikes)
        book = subjects[turn % len(subjects)]
        among = partial(at_work, kind, book, files) if kind in AIMED else None
        busy = partial(has_in_hands, str(book.pk)) if kind == BACKGROUND else None
        fallen = strike(kind, self.service, chance, done, among, busy)
        if kind == BACKGROUND:
            fallen = replace(fallen, held=in_the_hands_of(fallen.pid))
        self.strikes.append(fallen)

    def wait(self, crowd: Crowd, count: float, until: float = inf) -> None:
        if not crowd.wait_for(count, QUIET, until):
            raise TimeoutError(f"no posting was completed for {QUIET:g} s")

    def judge(self, files: ImportedFiles, cases: list[SoakCase]) -> list[dict[str, Any]]:
        posted = [calls.read(each.folder) for each in cases]
        in_time = not self.plan.at_most or self.took < self.plan.at_most
        wanted = self.plan.postings if in_time else self.done
        self.doubts += shortfall(wanted, self.done, sum(map(completed, posted)))
        control: Word | None = None
        results = []
        for case, seen in zip(cases, posted, strict=True):
            result = judged(case, seen, self.strikes, files, self.doubts, control)
            control = control or result.word
            results.append(as_json(case, result))
        return results
