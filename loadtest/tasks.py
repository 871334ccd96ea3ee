"""The background tasks of what is asked for in the admin: each takes steps of what waits (loadtest/background)."""

from __future__ import annotations

import logging

from procrastinate.contrib.django import app

from loadtest.background.commands import COMMAND_LINES
from loadtest.background.imports import IMPORTS
from loadtest.background.runner import Runner
from loadtest.background.swarms import SWARMS

log = logging.getLogger(__name__)


@app.periodic(cron="* * * * * */2")
@app.task(name="advance_comparisons", queueing_lock="advance_comparisons", queue="imports")
def advance_comparisons(timestamp: int) -> None:
    """Judge the imports that have finished, and start the next ones."""
    _to_the_end(IMPORTS)


@app.periodic(cron="* * * * * */2")
@app.task(name="advance_measured", queueing_lock="advance_measured", queue="swarms")
def advance_measured(timestamp: int) -> None:
    """Run swarms and commands, one after the other, while no other worker does."""
    _to_the_end(SWARMS, COMMAND_LINES)


def _to_the_end(*runners: Runner) -> None:
    """Take steps of each request, the oldest first, until there is nothing to do now."""
    whose = {pk: runner for runner in runners for pk in runner.waiting()}
    for pk in sorted(whose):
        try:
            while whose[pk].advance(pk):
                pass
        except Exception:  # one that cannot be advanced does not hold up the others
            log.exception("trial %s cannot be advanced", pk)
