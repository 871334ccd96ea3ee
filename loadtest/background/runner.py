"""What somebody asked for in the admin: a row, which background workers run step after step.

    begin → a row: options.strategies, one for each step → a worker's periodic task: advance(row) → step(row, 0)
          → its results, in one transaction with options.done = 1 → advance(row) → step(row, 1) → … → ended

A runner has no process and no state of its own. The row says what was asked for and how far it is. An advisory lock
keeps two workers from running one step, and it belongs to the worker's session: if the worker is killed, the lock is
free, and another worker runs that step again.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django.db import connection, transaction
from django.utils import timezone

from loadtest import models
from loadtest.trials import records

#: the advisory lock is this number, and 0 for all that is measured, else the row's own
LOCK = 0x5741524D
log = logging.getLogger(__name__)


class Runner(ABC):
    """One kind of request. `commands`: the `Trial.command` of its rows."""

    commands: ClassVar[tuple[str, ...]]
    #: two that are measured do not run at once: they would distort each other's figures
    measured: ClassVar[bool] = True

    @abstractmethod
    def step(self, row: models.Trial, at: int) -> list[models.Result] | None:
        """Run the step `at`, and return its results, which are not stored yet. None: ask again later."""

    @abstractmethod
    def failed(self, row: models.Trial, at: int, error: Exception) -> models.Result:
        """Return the result of a step that raised `error`. The steps after it still run."""

    def under_way(self, row: models.Trial, at: int) -> bool:
        """Is the step `at` run by somebody else, so that it must be seen to its end?"""
        return False

    def waiting(self) -> list[int]:
        """Return the requests that have not ended, the oldest first. What a command line runs is none."""
        unended = models.Trial.objects.filter(command__in=self.commands, ended=None, options__has_key="done")
        return list(unended.order_by("started").values_list("pk", flat=True))

    def advance(self, row_id: int) -> bool:
        """Take one step of a request, or end it. False: there is nothing to do now."""
        with _alone(0 if self.measured else row_id) as free:
            row = models.Trial.objects.filter(pk=row_id, ended=None).first() if free else None
            if row is None:
                return False
            at, steps = row.options["done"], len(row.options["strategies"])
            if at < steps and (not row.stopped or self.under_way(row, at)):
                row.options["at"] = at
                row.save(update_fields=["options"])
                found = self._found(row, at)
                if found is None:
                    return False
                _keep(row, at, found)
            if row.stopped or row.options["done"] == steps:
                records.close(row)
            return True

    def _found(self, row: models.Trial, at: int) -> list[models.Result] | None:
        try:
            return self.step(row, at)
        except Exception as error:
            log.exception("step %s of %s failed", at + 1, row)
            return [self.failed(row, at, error)]


def steps(strategies: Iterable[str], user: Any = None) -> dict[str, Any]:
    """Return the options of a request by `user` with one step for each of `strategies`."""
    return {"strategies": list(strategies), "started_by": user.pk if user else None, "done": 0, "at": None}


def _keep(row: models.Trial, at: int, found: list[models.Result]) -> None:
    """Store a step's results, unless another worker did, to which a lost session left the lock."""
    with transaction.atomic():
        stored = models.Trial.objects.select_for_update().get(pk=row.pk)
        if stored.options["done"] == at:
            for result in found:
                result.save()
            row.options |= {"done": at + 1, "at": None}
            row.save(update_fields=["options", "environment"])
    row.refresh_from_db()


def stop(row_id: int) -> bool:
    """Begin no further step. False: the request had been stopped before, or had ended."""
    unended = models.Trial.objects.filter(pk=row_id, ended=None)
    # runners read this field before they begin a step, and write it never
    stopped = unended.filter(stopped=None).update(stopped=timezone.now())
    # one that waits has nothing to finish, and would hold one of its user's few places
    unended.filter(options__has_key="done", options__at=None).update(ended=timezone.now())
    return bool(stopped)


@contextmanager
def _alone(key: int) -> Iterator[bool]:
    """Hold an advisory lock. False: another session holds it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [LOCK, key])
        (free,) = cursor.fetchone()
    try:
        yield free
    finally:
        if free:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [LOCK, key])
