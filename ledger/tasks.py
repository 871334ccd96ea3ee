"""The background tasks. Workers: `python manage.py procrastinate worker`, in any number of processes.

No task carries state. Whether a task runs twice, late or not at all, the rows say what is left to do.
"""

from __future__ import annotations

from procrastinate import JobContext
from procrastinate.contrib.django import app
from procrastinate.jobs import Status

from ledger.imports import apply, chunks, jobs, scan
from ledger.models import ImportRun

#: the priority of jobs that supervise the others: with more lanes than workers they would otherwise wait too long
FIRST = 10
#: seconds that a chunk rests after some of its lines met a busy account
BUSY_PAUSE = 1.0


@app.task(name="import_lane", pass_context=True)
def import_lane(context: JobContext, run: int, lane: int) -> None:
    """Process one chunk of a run, then queue up again behind the other runs."""
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
    """Wake the lanes without a worker: the worker was killed, or the chunk had to wait."""
    for run in ImportRun.objects.filter(finished=None):
        jobs.wake(run)


@app.periodic(cron="* * * * *")
@app.task(name="forget_stalled_jobs", queueing_lock="forget_stalled_jobs", queue="imports", priority=FIRST)
async def forget_stalled_jobs(timestamp: int) -> None:
    """Delete the jobs of killed workers, which the queue would otherwise show as "doing" for good. The rows say what
    is left to do, and the sweep has long found it there."""
    for job in await app.job_manager.get_stalled_jobs():
        await app.job_manager.finish_job(job, status=Status.FAILED, delete_job=True)
