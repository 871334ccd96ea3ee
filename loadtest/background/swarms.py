"""A swarm comparison that was requested in the admin. A background worker does what `manage.py compare` does."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from ledger.models import Book
from ledger.strategies import CONTROL
from loadtest import models
from loadtest.background.runner import Runner, steps
from loadtest.swarm.compare import Comparison, once
from loadtest.trials import records
from loadtest.trials.case import skipped
from loadtest.verdict.words import Word

COMMAND = "swarm"


class SwarmRunner(Runner):
    """A step is one case of the comparison."""

    commands = (COMMAND,)

    def begin(self, plan: Comparison, user: Any = None) -> models.Trial:
        """Store the request. Raises ValueError for a wrong workload, store or setting."""
        cases = list(plan.cases())
        return records.begin(
            COMMAND,
            workload=plan.workload,
            store=plan.store,
            plan=plan.as_json(),
            ways=[case.way for case in cases],
            stores=[case.store for case in cases],
            **steps([case.strategy for case in cases], user),
        )

    def step(self, row: models.Trial, at: int) -> list[models.Result]:
        plan = _plan(row)
        case = list(plan.cases())[at]
        controls = row.results.filter(strategy=CONTROL, data__store=case.store)
        control = controls.exclude(verdict=Word.NOT_RUN).first()

        def opened(book: Book) -> None:
            row.options["book"] = str(book.pk)  # its page draws it as it goes
            with transaction.atomic():  # not all of `row.options`: another worker may have got further
                stored = models.Trial.objects.select_for_update().get(pk=row.pk)
                stored.options["book"] = row.options["book"]
                stored.save(update_fields=["options"])

        return [records.result(row, once(plan, case, Word(control.verdict) if control else None, opened))]

    def failed(self, row: models.Trial, at: int, error: Exception) -> models.Result:
        case = list(_plan(row).cases())[at]
        return records.result(
            row, skipped(case, f"the load test failed: {error}", "the worker's log has the details")
        )


def _plan(row: models.Trial) -> Comparison:
    asked_for = row.options["plan"]
    return Comparison(**{**asked_for, "strategies": tuple(asked_for["strategies"])})


SWARMS = SwarmRunner()
