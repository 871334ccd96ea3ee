"""A comparison of imports: it imports the same files under each strategy in turn, the control first, and judges each.

It has no process of its own. Its rows hold its state: `Trial.options` says what was requested, and which import belongs
to which strategy. `advance` takes the next step. A worker's periodic task calls it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from ledger.imports.operations import asked
from ledger.imports.upload import Upload, nothing_to_import, start_import, stored
from ledger.imports.ways import SET_BASED_UNDER, Way
from ledger.models import Book, ImportFile, ImportLine, ImportRun
from ledger.strategies import CARD, CONTROL
from loadtest import models
from loadtest.history.calls import Call, History
from loadtest.swarm.import_plan import ImportFiles
from loadtest.trials import records
from loadtest.trials.availability import missing
from loadtest.trials.case import Case, Judgement, Witness, run, skipped
from loadtest.trials.deadlocks import deadlocks
from loadtest.verdict.evidence import Doubt
from loadtest.verdict.words import Word
from loadtest.workloads import Opening

COMMAND = "import"
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Comparison:
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
class ImportCase(Case):
    """A case whose book was opened when its import started."""

    book: Book

    def open(self) -> Book:
        return self.book


def begin(asked_for: Comparison, user: Any = None) -> models.Trial:
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
            strategies=strategies,
            workers=asked_for.workers,
            all_or_nothing=asked_for.all_or_nothing,
            scan=asked_for.scan,
            settings=asked_for.settings,
            started_by=user.pk if user else None,
            imports={},
            deadlocks={},
        )
        _start_next(row, workload)
    return row


def advance(row_id: int) -> bool:
    """Judge the import that has finished, and start the next one. True: the comparison has ended."""
    with transaction.atomic():
        row = models.Trial.objects.select_for_update(skip_locked=True).filter(pk=row_id, ended=None).first()
        if row is None:
            return False
        judged = _judged(row)
        for subject, import_id in row.options["imports"].items():
            if subject in judged:
                continue
            current = ImportRun.objects.select_related("book").get(pk=import_id)
            if not current.finished:
                return False
            _judge(row, subject, current)
        return _start_next(row, _workload(row))


def _start_next(row: models.Trial, workload: ImportFiles) -> bool:
    """Start the import of the next strategy that can be tried here. True: none is left, or the user has stopped it."""
    options = row.options
    done = {*options["imports"], *_judged(row)}
    for subject in (each for each in options["strategies"] if each not in done and not row.stopped):
        case = _case(row, subject, workload)
        if lacking := missing(case.strategy, row.store):
            records.record(row, skipped(case, *lacking))
            continue
        options["deadlocks"][subject] = deadlocks(row.store)
        book = case.open()
        options["imports"][subject] = start_import(
            book,
            workload.uploads,
            workers=options["workers"],
            way=case.way,
            all_or_nothing=options["all_or_nothing"],
            scan=options["scan"],
            user=get_user_model().objects.filter(pk=options["started_by"]).first(),
        ).pk
        row.save(update_fields=["options"])
        return False
    row.ended = timezone.now()
    row.save(update_fields=["options", "ended"])
    return True


def _judged(row: models.Trial) -> set[str]:
    """Cases are judged in the order in which they were requested, with one result each."""
    return set(row.options["strategies"][: row.results.count()])


def _judge(row: models.Trial, subject: str, finished: ImportRun) -> None:
    """Judge one case. If anything goes wrong with it, the page says what, and the other cases still run."""
    case = _case(row, subject, _workload(row))
    try:
        with transaction.atomic():
            result = _result(row, subject, case, finished)
    except Exception as error:
        log.exception("the import under %s could not be judged", subject)
        result = skipped(case, f"could not be judged: {error}", "the worker's log has the details")
    records.record(row, result)


def _result(row: models.Trial, subject: str, case: Case, finished: ImportRun) -> Judgement:
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


def history_of(book: Book) -> History:
    """Return what the import's workers saw, in the form in which the swarm's clients record their calls."""
    calls = [
        Call(
            each.key,
            tuple(each.legs.items()),
            each.outcome,
            each.started,
            each.ended,
            each.worker,
            answered=each.state not in ImportLine.UNANSWERED,
            retries=max(0, each.attempts - 1),
            busy=each.state == "busy",
            error=each.problem,
        )
        for each in asked(book)
    ]
    return History(sorted(calls, key=lambda call: call.started))


def _case(row: models.Trial, subject: str, workload: ImportFiles) -> Case:
    """`subject`: a strategy, or the set-based way."""
    given = {"workload": workload, "store": row.store, "settings": row.options["settings"]}
    if subject == Way.SET_BASED:
        return Case(strategy=SET_BASED_UNDER, way=subject, **given)
    return Case(strategy=subject, **given)


def _workload(row: models.Trial) -> ImportFiles:
    files = ImportFile.objects.in_bulk([pk for _, pk in row.options["files"]])
    uploads = [Upload(name, bytes(files[pk].content)) for name, pk in row.options["files"]]
    return ImportFiles(uploads, [Opening(*each) for each in row.options["openings"]])
