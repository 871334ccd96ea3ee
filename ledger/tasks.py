"""The background tasks. Workers: `python manage.py procrastinate worker`, as many processes as one likes.

None of them carries state: a task that is run twice, late, or never finds in the rows what is left to do.
"""

from __future__ import annotations

from procrastinate import JobContext
from procrastinate.contrib.django import app
from procrastinate.jobs import Status

from ledger.imports import apply, chunks, jobs, scan
from ledger.models import ImportRun

#: jobs that see to the others: with more lanes than workers they would wait behind all of these
FIRST = 10
#: seconds that a chunk rests when lines of it met a busy account
BUSY_PAUSE = 1.0


@app.task(name="import_lane", pass_context=True)
def import_lane(context: JobContext, run: int, lane: int) -> None:
    """Work off one chunk of a run, then queue up again behind the other runs."""
    chunk = chunks.claim(run, lane)
    if chunk is None:
        return
    left = apply.work(chunk, stop=context.should_abort)
    chunks.give_back(chunk, later=BUSY_PAUSE if left else 0.0)
    if chunks.open_chunks(run, lane).exists():
        jobs.enqueue(run, lane)


@app.periodic(cron="* * * * * */2")
@app.task(name="scheduled_scan", queueing_lock="scheduled_scan", queue="scan", priority=FIRST)
def scheduled_scan(timestamp: int) -> None:
    """Charge the busiest accounts of every running import (the sixth field of the cron line is the second)."""
    scan.scan_running_imports()


@app.periodic(cron="* * * * * */3")
@app.task(name="sweep_imports", queueing_lock="sweep_imports", queue="imports", priority=FIRST)
def sweep_imports(timestamp: int) -> None:
    """Wake the lanes that nobody works on: their worker was killed, or their chunk had to wait."""
    for run in ImportRun.objects.filter(finished=None):
        jobs.wake(run)


@app.periodic(cron="* * * * *")
@app.task(name="forget_stalled_jobs", queueing_lock="forget_stalled_jobs", queue="imports", priority=FIRST)
async def forget_stalled_jobs(timestamp: int) -> None:
    """Delete the jobs of workers that were killed: the queue would show them as "doing" for good. What they left to
    do stands in the rows, where the sweep has found it long ago."""
    for job in await app.job_manager.get_stalled_jobs():
        await app.job_manager.finish_job(job, status=Status.FAILED, delete_job=True)
