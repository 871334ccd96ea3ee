"""Put a run's work into the queue. The queue is only transport: a job says "lane 2 of run 7", nothing more.

A run with `workers` = 4 has the lanes 1 to 4 for its files, and lane 0 for the scheduled scan.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now
from procrastinate.contrib.django import app
from procrastinate.exceptions import AlreadyEnqueued

from ledger.imports.chunks import SCAN_LANE, close, open_chunks
from ledger.models import ImportChunk, ImportRun


def wake(run: ImportRun) -> int:
    """Queue a job for each lane that has work but no worker. Returns the number of jobs.

    Called when a run starts, and by the sweeper: a lane whose worker was killed is woken here once its chunk's lease
    is over, whatever the queue says about the dead worker's job.
    """
    if close(run):
        return 0
    working = set(
        ImportChunk.objects.filter(
            batch__run=run, state=ImportChunk.State.WORKING, lease_until__gt=Now()
        ).values_list("lane", flat=True)
    )
    woken = 0
    for lanes in ([SCAN_LANE], range(1, run.workers + 1)):
        free = [lane for lane in lanes if lane not in working]
        due = open_chunks(run.pk, lanes[0])[: len(free)].count()
        woken += sum(enqueue(run.pk, lane) for lane in free[:due])
    return woken


def enqueue(run: int, lane: int) -> bool:
    """Queue one job for a lane. Returns False if one is queued already."""
    queue = "scan" if lane == SCAN_LANE else "imports"  # docker-compose.yml runs a worker only for scans
    task = app.configure_task("import_lane", queueing_lock=f"import:{run}:{lane}", queue=queue)
    try:
        with transaction.atomic():  # a savepoint: a refused job must not break the caller's transaction
            task.defer(run=run, lane=lane)
    except AlreadyEnqueued:
        return False
    return True
