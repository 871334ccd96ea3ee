"""What killed background workers leave in the queue's table."""

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from ledger import tasks


def job_of(worker_heard_of: str) -> int:
    """A job in work, by a worker that was last heard of at that time (SQL)."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO procrastinate_workers (last_heartbeat) VALUES ({worker_heard_of}) RETURNING id"
        )
        cursor.execute(
            "INSERT INTO procrastinate_jobs (task_name, queue_name, status, worker_id)"
            " VALUES ('import_lane', 'imports', 'doing', %s) RETURNING id",
            cursor.fetchone(),
        )
        return int(cursor.fetchone()[0])


@pytest.mark.django_db
def test_the_jobs_of_a_killed_worker_are_forgotten_and_those_of_a_living_one_are_not() -> None:
    killed, living = job_of("now() - interval '5 minutes'"), job_of("now()")
    async_to_sync(tasks.forget_stalled_jobs.func)(0)
    left = ProcrastinateJob.objects.filter(pk__in=[killed, living])
    assert [each.pk for each in left] == [living]
