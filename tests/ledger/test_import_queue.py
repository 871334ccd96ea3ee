"""Which job a worker takes first, asked of the queue itself."""

from __future__ import annotations

import pytest
from django.db import connection
from procrastinate.contrib.django import app

from ledger.imports import jobs


@pytest.mark.usefixtures("empty_queue")
@pytest.mark.parametrize("task", ["sweep_imports", "scheduled_scan", "forget_stalled_jobs"])
def test_what_sees_to_the_lanes_does_not_wait_behind_them(task: str) -> None:
    """A worker was killed, and more lanes wait than there are workers: its lines wait for the sweep."""
    for lane in range(3):
        jobs.enqueue(7, lane)
    app.configure_task(task).defer(timestamp=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT worker_id FROM procrastinate_register_worker_v1()")
        worker = cursor.fetchone()
        cursor.execute("SELECT task_name FROM procrastinate_fetch_job_v2(NULL, %s)", worker)
        assert cursor.fetchone() == (task,)
