"""The lock table on MariaDB, searched in a process of its own. (Nothing here needs Django until it is set up.)"""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Connection
from typing import Any


def search(pipe: Connection, environment: dict[str, str], path: list[str], levels: tuple[str, ...]) -> None:
    """A process with Django's settings for servers of its own. Sends for each isolation level: was the search
    exhausted, its words, the errors that MariaDB answered with in any schedule, and what the gravest one says."""
    os.environ.update(environment)
    sys.path[:] = path
    import django

    django.setup()
    from loadtest.explorer.explore import harness_of
    from loadtest.findings.job import Job
    from lost_update_lab.gates.mariadb import step
    from lost_update_lab.search.search import Search

    tell, errors = step._tell, set()

    def hear(run: Any, task: Any, op: Any, reply: bytes, told: str) -> None:
        errors.update(number for number in ("1062", "1213") if f"Error: {number}" in told)
        tell(run, task, op, reply, told)

    step._tell = hear
    found = {}
    for level in levels:
        errors.clear()
        job = Job(strategy="lock-table", store="mariadb", faults=0)
        with harness_of(job, extra={"isolation": level}) as harness:
            result = Search(harness).explore()
        example = result.smallest(result.worst)
        told = " ".join(example.judgement.sentences) if example else ""
        found[level] = (result.exhausted, sorted(result.words), sorted(errors), told)
    pipe.send(found)
