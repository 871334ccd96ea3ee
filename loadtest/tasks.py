"""The background tasks of the admin's comparisons."""

from __future__ import annotations

from procrastinate.contrib.django import app

from loadtest import swarm_comparison
from loadtest.imports.comparison import COMMAND, advance
from loadtest.models import Trial


@app.periodic(cron="* * * * * */2")
@app.task(name="advance_comparisons", queueing_lock="advance_comparisons", queue="imports")
def advance_comparisons(timestamp: int) -> None:
    """Take the next step of every comparison that has not ended."""
    for pk in Trial.objects.filter(command=COMMAND, ended=None).values_list("pk", flat=True):
        advance(pk)


@app.periodic(cron="* * * * * */2")
@app.task(name="advance_swarms", queueing_lock="advance_swarms", queue="swarms")
def advance_swarms(timestamp: int) -> None:
    """Run what was asked for, trial after trial, while no other worker does."""
    for pk in swarm_comparison.waiting():
        while swarm_comparison.advance(pk):
            pass
