"""Results as files and as rows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from loadtest import models
from loadtest.trials.case import JudgedCase
from loadtest.trials.environment import environment


def begin(
    command: str, *, workload: str, store: str, adversary: str = "none", **options: Any
) -> models.Trial:
    """Open the row of a command's run. Raises ValueError if the user `started_by` has too many that have not ended."""
    with transaction.atomic():
        if user := options.get("started_by"):
            _has_room(user)
        return models.Trial.objects.create(
            command=command,
            workload=workload,
            store=store,
            adversary=adversary,
            options=options,
            environment=environment(),
        )


def _has_room(user: int) -> None:
    get_user_model().objects.select_for_update().get(
        pk=user
    )  # a row lock, so that two requests at once count one after the other
    unended = models.Trial.objects.filter(ended=None, options__started_by=user).count()
    if unended >= settings.TRIALS_AT_ONCE:
        raise ValueError(
            f"{unended} of your comparisons have not ended: wait for one of them. "
            f"{settings.TRIALS_AT_ONCE} may run at once (TRIALS_AT_ONCE)"
        )


def result(row: models.Trial, judged: JudgedCase) -> models.Result:
    """Return one result, which is not stored yet."""
    return models.Result(
        trial=row,
        strategy=judged.case.strategy,
        verdict=str(judged.word),
        book=judged.book,
        data=judged.as_json(),
    )


def record(row: models.Trial, judged: JudgedCase) -> dict[str, Any]:
    """Store one result. Return its JSON object."""
    stored = result(row, judged)
    stored.save()
    data: dict[str, Any] = stored.data
    return data


def finish(row: models.Trial, results: list[dict[str, Any]], path: Path) -> dict[str, Any]:
    """Write the run's file, whole or not at all, and close the row. Return the file's content."""
    report = report_of(row, results)
    write(report, path)
    close(row)  # after the file, because the database may be the reason why the run was cut short
    return report


def report_of(row: models.Trial, results: list[dict[str, Any]], *, stopped: bool = False) -> dict[str, Any]:
    """Return the content of the file of a command that ends now. `stopped`: before everything ran; what is missing is
    among the results as `not-run`, because of STOPPED."""
    return {
        "command": row.command,
        "started": row.started.isoformat(),
        "ended": timezone.now().isoformat(),
        "stopped": stopped,
        "environment": row.environment,
        "options": row.options,
        "results": results,
    }


def close(row: models.Trial) -> None:
    """Record that the command's run has ended."""
    row.ended = timezone.now()
    row.save(update_fields=["ended"])


def write(report: dict[str, Any], path: Path) -> None:
    """Write a command's file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(f".{os.getpid()}.tmp")
    half.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    half.replace(path)
