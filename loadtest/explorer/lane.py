"""One lane: servers and a database of its own, and a process that explores one job after another.

The lane's process has Django settings for these servers. It is not the command's process, so lanes run in parallel, and
a system under test that crashes its process crashes nothing else.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

#: what a lane is told first: its servers run
OPEN = "open"
#: what a lane says before its first answer: its servers are migrated, and a job's budget can begin
READY = "ready"


def main(pipe: Connection, environment: dict[str, str], path: list[str], core: int | None, last: str) -> None:
    """Explore the jobs that come through the pipe, until it closes. `last`: a file for this process's last words."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, which then ends this process
    os.environ.update(environment)
    sys.path[:] = path
    import django

    django.setup()
    from lost_update_lab.runs import garbage

    with garbage.frozen():  # what a search has learned is frozen until `_serve` lets it go
        _serve(pipe, environment, core, last)


def _serve(pipe: Connection, environment: dict[str, str], core: int | None, last: str) -> None:
    from django.core.management import call_command

    from loadtest.explorer.cores import keep_here
    from loadtest.explorer.explore import explore, graph, replay
    from loadtest.explorer.pulse import watched
    from loadtest.trials.environment import environment as measured
    from lost_update_lab.runs import garbage
    from lost_update_lab.runs.worker_thread import WorkerThread

    # what exists now stays: no collection looks for garbage in it. No connection is among it yet, since a look for them
    # would not find what is frozen (servers/connections_before.py)
    gc.freeze()
    at_first = garbage.held_in_memory()
    if _received(pipe) != OPEN:
        return
    if "MARIADB_URL" in environment:
        call_command("migrate", database="mariadb", verbosity=0)
    measured_at = measured()
    keep_here(core)
    try:
        pipe.send(READY)
    except OSError:  # the command has ended meanwhile
        return

    while (job := _received(pipe)) is not None:
        does = graph if job.positions else explore if job.choices is None else replay
        with watched(job.budget, last):
            answer = _answer(does, job)
        # the job's lost connections wait in cycles, and the server has room for a hundred. What searches have learned
        # may go too, once it is as much as was there before them
        garbage.collect_all_beyond(2 * at_first)
        pipe.send({**answer, "environment": measured_at, "last": WorkerThread.left > 0})
        if WorkerThread.left:  # a thread hangs in this process: a new one continues
            return


def _received(pipe: Connection) -> Any:
    """The next message of the command. None: it has ended."""
    try:
        return pipe.recv()
    except (EOFError, OSError):
        return None


def _answer(do: Any, job: Any) -> dict[str, Any]:
    try:
        return {"result": do(job)}
    except Exception as error:  # noqa: BLE001  (reported to the command: the system under test may raise anything)
        return _told(error)


def _told(error: Exception) -> dict[str, Any]:
    from lost_update_lab.model.errors import Broken, Elsewhere

    if isinstance(error, Elsewhere):
        reason = f"{error}; {error.before}" if error.before else str(error)
        told = {"reason": reason, "remedy": error.remedy, "trace": error.trace, "figures": dict(error.seen)}
        return {"elsewhere": told}
    if isinstance(error, Broken):
        return {"error": str(error), "remedy": error.remedy, "trace": error.trace}
    return {"error": f"{type(error).__name__}: {error}", "trace": "".join(traceback.format_exception(error))}
