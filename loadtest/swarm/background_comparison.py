"""A swarm comparison that was requested in the admin. A background worker does what `manage.py compare` does.

Like the comparison of imports, it has no process of its own. Its rows say what was requested and what is judged so
far, and `advance` runs the next case, in whichever worker calls it. The advisory lock belongs to the worker's session:
if the worker is killed, the lock is free, and another worker runs that case again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from ledger.strategies import CONTROL
from loadtest import models
from loadtest.swarm.compare import Comparison, once
from loadtest.trials import records
from loadtest.trials.case import Case, Judgement, skipped
from loadtest.verdict.words import Word

COMMAND = "swarm"
#: swarms run one after the other: two at once would distort each other's figures
LOCK = 0x5741524D
log = logging.getLogger(__name__)


def begin(plan: Comparison, user: Any = None) -> models.Trial:
    """Store the request. Raises ValueError for a wrong workload, store or setting."""
    cases = list(plan.cases())
    return records.begin(
        COMMAND,
        workload=plan.workload,
        store=plan.store,
        plan=plan.as_json(),
        strategies=[case.strategy for case in cases],
        ways=[case.way for case in cases],
        stores=[case.store for case in cases],
        started_by=user.pk if user else None,
        at=None,
    )


def waiting() -> list[int]:
    """Return the comparisons that have not ended, the oldest first."""
    unended = models.Trial.objects.filter(command=COMMAND, ended=None)
    return list(unended.order_by("started").values_list("pk", flat=True))


def advance(row_id: int) -> bool:
    """Run the next trial of a comparison, or end it. False: it has ended, or another worker runs one."""
    with alone() as free:
        row = models.Trial.objects.filter(pk=row_id, ended=None).first() if free else None
        if row is None:
            return False
        if row.stopped:
            return _end(row)
        plan = _plan(row)
        cases = list(plan.cases())
        at = row.results.count()
        row.options["at"] = at
        row.save(update_fields=["options"])
        result = _result(row, plan, cases[at])
        with transaction.atomic():
            if models.Trial.objects.select_for_update().get(pk=row.pk).results.count() == at:
                records.record(row, result)
            if at + 1 == len(cases):
                _end(row)
        return True


def _end(row: models.Trial) -> bool:
    row.ended = timezone.now()
    row.save(update_fields=["ended"])
    return True


def _result(row: models.Trial, plan: Comparison, case: Case) -> Judgement:
    """Run one case. If anything goes wrong with it, the page says what, and the other cases still run."""
    controls = row.results.filter(strategy=CONTROL, data__store=case.store).exclude(verdict=Word.NOT_RUN)
    control = controls.first()
    try:
        return once(plan, case, Word(control.verdict) if control else None)
    except Exception as error:
        log.exception("the swarm on %s failed", case.strategy)
        return skipped(case, f"the swarm failed: {error}", "the worker's log has the details")


def _plan(row: models.Trial) -> Comparison:
    asked_for = row.options["plan"]
    return Comparison(**{**asked_for, "strategies": tuple(asked_for["strategies"])})


@contextmanager
def alone() -> Iterator[bool]:
    """Hold the swarms' advisory lock. False: another session holds it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        (free,) = cursor.fetchone()
    try:
        yield free
    finally:
        if free:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
