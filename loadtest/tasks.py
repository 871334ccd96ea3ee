"""The background tasks of the admin's comparisons."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from procrastinate.contrib.django import app

from loadtest.background import commands
from loadtest.models import Trial
from loadtest.swarm import background_comparison
from loadtest.swarm.import_comparison import COMMAND, advance

log = logging.getLogger(__name__)


@app.periodic(cron="* * * * * */2")
@app.task(name="advance_comparisons", queueing_lock="advance_comparisons", queue="imports")
def advance_comparisons(timestamp: int) -> None:
    """Take the next step of every comparison that has not ended."""
    for pk in Trial.objects.filter(command=COMMAND, ended=None).values_list("pk", flat=True):
        with _each_on_its_own(pk):
            advance(pk)


@app.periodic(cron="* * * * * */2")
@app.task(name="advance_swarms", queueing_lock="advance_swarms", queue="swarms")
def advance_swarms(timestamp: int) -> None:
    """Run what was asked for, trial after trial, while no other worker does."""
    _to_the_end(background_comparison.waiting(), background_comparison.advance)


@app.periodic(cron="* * * * * */2")
@app.task(name="advance_commands", queueing_lock="advance_commands", queue="swarms")
def advance_commands(timestamp: int) -> None:
    """Run what was asked for of explore, faults and trust, strategy after strategy, while nothing else is measured."""
    _to_the_end(commands.waiting(), commands.advance)


def _to_the_end(waiting: Iterable[int], step: Callable[[int], bool]) -> None:
    """Take steps of each until it has ended, or another worker measures something."""
    for pk in waiting:
        with _each_on_its_own(pk):
            while step(pk):
                pass


@contextmanager
def _each_on_its_own(pk: int) -> Iterator[None]:
    """A comparison that cannot be advanced does not hold up the others."""
    try:
        yield
    except Exception:
        log.exception("comparison %s cannot be advanced", pk)
