"""A comparison of imports: it imports the same files under each strategy in turn, the control first, and judges each.

`Trial.options` says which import belongs to which strategy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from ledger.imports.upload import Upload, nothing_to_import, start_import, stored
from ledger.imports.ways import SET_BASED_UNDER, Way
from ledger.models import Book, ImportFile, ImportLine, ImportRun
from ledger.strategies import CARD, CONTROL
from loadtest import models
from loadtest.background.runner import Runner, steps
from loadtest.swarm.import_history import history_of
from loadtest.swarm.import_plan import ImportFiles
from loadtest.trials import records
from loadtest.trials.availability import missing
from loadtest.trials.case import JudgedCase, TrialCase, Witness, run, skipped
from loadtest.trials.deadlocks import deadlocks
from loadtest.verdict.evidence import Doubt
from loadtest.verdict.words import Word
from loadtest.workloads import Opening

COMMAND = "import"


@dataclass(frozen=True, kw_only=True)
class ImportComparison:
    """What was requested. `settings`: those of the books, in seconds. `openings`: the accounts of each book."""

    files: tuple[Upload, ...]
    openings: tuple[Opening, ...] = ()
    opening: int = 0
    strategies: tuple[str, ...] = CARD
    workers: int = 4
    all_or_nothing: bool = False
    scan: bool = True
    store: str = "postgres"
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ImportCase(TrialCase):
    """A case whose book was opened when its import started."""

    book: Book

    def open(self) -> Book:
        return self.book


class ImportRunner(Runner):
    """A step is one import, which the import's own workers run: it is started, looked at, and judged."""

    commands = (COMMAND,)
    measured = False

    def begin(self, asked_for: ImportComparison, user: Any = None) -> models.Trial:
        """Store the request and start the control's import. Raises ValueError if no line can be imported."""
        workload = ImportFiles(asked_for.files, asked_for.openings, asked_for.opening)
        if not workload.lines:
            raise nothing_to_import(asked_for.files)
        strategies = [CONTROL, *(slug for slug in asked_for.strategies if slug != CONTROL)]
        if asked_for.store == "postgres" and set(CARD) <= set(strategies):
            strategies.append(Way.SET_BASED)
        with transaction.atomic():
            row = records.begin(
                COMMAND,
                workload=ImportFiles.slug,
                store=asked_for.store,
                files=[[upload.name, stored(upload).pk] for upload in asked_for.files],
                openings=[[each.account, each.opening, each.floor] for each in workload.openings()],
                workers=asked_for.workers,
                all_or_nothing=asked_for.all_or_nothing,
                scan=asked_for.scan,
                settings=asked_for.settings,
                imports={},
                deadlocks={},
                **steps(strategies, user),
            )
            row.options["at"] = 0
            _start(row, CONTROL, workload)
        return row

    def under_way(self, row: models.Trial, at: int) -> bool:
        return row.options["strategies"][at] in row.options["imports"]

    def step(self, row: models.Trial, at: int) -> list[models.Result] | None:
        subject = row.options["strategies"][at]
        workload = _workload(row)
        case = _case(row, subject, workload)
        if not self.under_way(row, at):
            if lacking := missing(case.strategy, row.store):
                return [records.result(row, skipped(case, *lacking))]
            _start(row, subject, workload)
            return None
        started = ImportRun.objects.select_related("book").get(pk=row.options["imports"][subject])
        if not started.finished:
            return None
        return [records.result(row, _judgement(row, subject, case, started))]

    def failed(self, row: models.Trial, at: int, error: Exception) -> models.Result:
        case = _case(row, row.options["strategies"][at], _workload(row))
        did = "judged" if self.under_way(row, at) else "started"
        return records.result(
            row, skipped(case, f"could not be {did}: {error}", "the worker's log has the details")
        )


def _start(row: models.Trial, subject: str, workload: ImportFiles) -> None:
    """Start the import of one subject."""
    options, before, case = row.options, deadlocks(row.store), _case(row, subject, workload)
    with transaction.atomic():
        run_id = start_import(
            case.open(),
            workload.uploads,
            workers=options["workers"],
            way=case.way,
            all_or_nothing=options["all_or_nothing"],
            scan=options["scan"],
            user=get_user_model().objects.filter(pk=options["started_by"]).first(),
        ).pk
        options["deadlocks"][subject], options["imports"][subject] = before, run_id
        row.save(update_fields=["options"])


def _judgement(row: models.Trial, subject: str, case: TrialCase, finished: ImportRun) -> JudgedCase:
    control = row.results.filter(strategy=CONTROL).first()
    result = run(
        ImportCase(**vars(case), book=finished.book),
        lambda *_: Witness(
            history=history_of(finished.book), facts={"import": finished.pk}, doubts=tuple(_doubts(finished))
        ),
        Word(control.verdict) if control else None,
    )
    # counted from the start of the import, of which `run` saw only the end
    return replace(result, deadlocks=deadlocks(row.store) - row.options["deadlocks"][subject])


def _doubts(run: ImportRun) -> Iterator[Doubt]:
    """An import that a user stopped may have stalled, or may just have been slow."""
    if run.stopped:
        left = ImportLine.objects.filter(batch__run=run, state=ImportLine.State.STOPPED).count()
        yield Doubt(f"its import was stopped with {left} lines left", "let it run to the end")


def _case(row: models.Trial, subject: str, workload: ImportFiles) -> TrialCase:
    """`subject`: a strategy, or the set-based way."""
    given = {"workload": workload, "store": row.store, "settings": row.options["settings"]}
    if subject == Way.SET_BASED:
        return TrialCase(strategy=SET_BASED_UNDER, way=subject, **given)
    return TrialCase(strategy=subject, **given)


def _workload(row: models.Trial) -> ImportFiles:
    files = ImportFile.objects.in_bulk([pk for _, pk in row.options["files"]])
    uploads = [Upload(name, bytes(files[pk].content)) for name, pk in row.options["files"]]
    return ImportFiles(uploads, [Opening(*each) for each in row.options["openings"]])


IMPORTS = ImportRunner()
