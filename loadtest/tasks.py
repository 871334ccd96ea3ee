"""The background task of the admin's comparisons."""

from __future__ import annotations

from procrastinate.contrib.django import app

from loadtest.imports.comparison import COMMAND, advance
from loadtest.models import Trial


@app.periodic(cron="* * * * * */2")
@app.task(name="advance_comparisons", queueing_lock="advance_comparisons", queue="imports")
def advance_comparisons(timestamp: int) -> None:
    """Take the next step of every comparison that has not ended."""
    for pk in Trial.objects.filter(command=COMMAND, ended=None).values_list("pk", flat=True):
        advance(pk)
