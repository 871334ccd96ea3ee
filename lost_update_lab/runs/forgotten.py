"""A connection that nobody refers to any more. Python closes it at once, and the server lets go of what it has locked.

    def claim():
        return psycopg.connect(…).execute("SELECT … FOR UPDATE SKIP LOCKED").fetchone()    the row is free again

The explorer refers to the connections of a worker, so here it lives on, and keeps others out. So a search that meets one
which holds something decides nothing.
"""

from __future__ import annotations

import sys

from lost_update_lab.model.errors import Broken
from lost_update_lab.model.server import Server
from lost_update_lab.model.workers import WorkerProcess

FORGOTTEN = (
    "{who} has locked something in a connection to {server} that its code refers to no more: Python closes such a "
    "connection at once, and the explorer keeps it"
)
CLOSE_IT = (
    "close the connection where its work is done (`with psycopg.connect(…) as connection:`), or keep it in a variable "
    "for as long as the lock is needed"
)


def forgotten(worker: WorkerProcess, servers: dict[str, Server]) -> Broken | None:
    """The reason to end the search; None: there is no such connection."""
    for name, sessions in worker.sessions.items():
        for connection in sessions:
            uses = sum(each is connection for task in worker.tasks for each in task.uses.get(name, ()))
            # … `sessions`, this variable, and the argument of getrefcount()
            if sys.getrefcount(connection) <= uses + 3 and _holds(servers[name], connection):
                return Broken(FORGOTTEN.format(who=worker.name, server=name), CLOSE_IT)
    return None


def _holds(server: Server, connection: object) -> bool:
    return server.keeps_rows([connection]) or server.keeps_out([connection])
