"""Which session waits for which in PostgreSQL, and what it may hold: asked of the server, never guessed from the SQL.

A command whose blocker is gone works on in the server by itself. Its UPDATE may find another version of the row and
release the next waiter, or lock the new version and make the next one wait again. Two waiters that are released at the
same moment race for the row, and the operating system decides which one wins: with three workers, the same choices gave
different schedules. So all but the first in the line are stopped (SIGSTOP) until nothing blocks them. Then each goes on
alone until it has answered, or waits again.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn

from lost_update_lab.model.memoised_server import Who
from lost_update_lab.model.server import NEWS_WITHIN_MS
from lost_update_lab.model.workers import Task

Rows = list[tuple[bytes | None, ...]]
Edges = dict[int, set[int]]
K = TypeVar("K")

#: a READ ONLY DEFERRABLE transaction waits for no lock, but until those that write beside it are over
BLOCKERS = (
    "SELECT pid, pg_blocking_pids(pid) || pg_safe_snapshot_blocking_pids(pid) FROM unnest($1::int[]) AS pid"
)
_SESSIONS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
#: what a SERIALIZABLE transaction has read (SIReadLock) stays there after its end, and keeps nobody waiting
HELD = """SELECT pid, locktype, mode FROM pg_locks
    WHERE pid = ANY($1) AND locktype <> 'virtualxid' AND mode <> 'SIReadLock'"""


def edges(rows: Rows) -> Edges:
    """Process id → the process ids that it waits for, from the rows of BLOCKERS."""
    return {
        int(pid or 0): {int(by) for by in (found or b"").strip(b"{}").split(b",") if by}
        for pid, found in rows
    }


def in_circle(pids: list[int], waits_for: Edges) -> list[int]:
    return [pid for pid in pids if pid in _reachable(pid, waits_for)]


def _reachable(start: int, waits_for: Edges) -> set[int]:
    seen: set[int] = set()
    front = list(waits_for.get(start, ()))
    while front:
        pid = front.pop()
        if pid not in seen:
            seen.add(pid)
            front += waits_for.get(pid, ())
    return seen


def holds(connection: Any) -> bool:
    """Does it hold a lock beyond its transactions?"""
    return bool(getattr(connection, "explorer_holds", False))


def wrote(connection: Any) -> bool:
    """May it hold a lock, of its transaction or beyond? A session that only reads holds none that others run into."""
    return holds(connection) or bool(getattr(connection, "explorer_wrote", False))


def keeps(connection: Any) -> bool:
    """Is it inside of a transaction that has locked a row, or something else?"""
    inside = not connection.closed and connection.pgconn.transaction_status != TransactionStatus.IDLE
    return inside and bool(getattr(connection, "explorer_locked", False))


def goes_through(session: PGconn) -> bool:
    """Read to the end. Was the cancel too late? It is, if what the command waited for has just been let go."""
    last = None
    while result := session.get_result():
        last = result.status
    idle = session.transaction_status == TransactionStatus.IDLE
    return idle and last in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


def who_of(tasks: Sequence[Task]) -> tuple[Who, ...]:
    """The sessions in which their commands wait."""
    return tuple(task.session.explorer_who for task in tasks)


def array(numbers: Sequence[int]) -> bytes:
    """The numbers as the parameter of a query."""
    return b"{%s}" % ",".join(map(str, numbers)).encode()


class WaitingLine:
    """Releases waiting sessions one after the other, so that the same one comes first each time.

    `blockers_of`: asks the server which sessions block these process ids. `admin`: a connection to it."""

    def __init__(self, admin: Any, blockers_of: Callable[[list[int]], Edges]) -> None:
        self._blockers_of, self._admin = blockers_of, admin.info.backend_pid
        self._is_here = _is_process_here(admin.info)
        #: sessions that an explorer left stopped when it was killed in the middle of a schedule
        self._still = {pid for (pid,) in admin.execute(_SESSIONS)} if self._is_here else set[int]()
        #: sessions whose commands were cancelled, and that have not heard of it
        self.stopping = set[Any]()
        self.end()

    def settle(self, sessions: Mapping[K, Any]) -> tuple[list[K], Edges]:
        """`sessions`: those that wait, in their order. Returns those whose commands have ended, and which sessions
        block the others. A moment in which a session that will wait again seems unblocked does not count. Nor is
        anybody free before a cancelled command was heard: how soon it frees others is a matter of speed. A session that
        stops in the middle of a command (looks.py) waits for nobody."""
        if any(not session.closed for session in self.stopping):
            return [], {}
        pids = {key: session.info.backend_pid for key, session in sessions.items()}
        patience = NEWS_WITHIN_MS
        while True:
            answered = {key for key, session in sessions.items() if _has_answered(session, 0)}
            blockers = self._blockers_of(list(pids.values()))
            answered |= {key for key, pid in pids.items() if blockers[pid] == {self._admin}}
            blockers = {pid: by - {self._admin} for pid, by in blockers.items()}
            free = [key for key, pid in pids.items() if not blockers[pid]]
            silent = next((key for key in free if key not in answered), None)
            if silent is None:
                for pid in list(pids.values())[1:]:
                    if blockers[pid]:
                        self._stand_still(pid)
                return free, blockers
            self.go_on(pids[silent])
            if not _has_answered(sessions[silent], patience):
                patience *= 2  # a busy machine: the reply will come

    def _stand_still(self, pid: int) -> None:
        if self._is_here and pid not in self._still:
            os.kill(pid, signal.SIGSTOP)
            self._still.add(pid)

    def go_on(self, pid: int) -> None:
        if pid in self._still:
            self._still.remove(pid)
            with suppress(ProcessLookupError):  # the session has ended
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        for pid in list(self._still):
            self.go_on(pid)


def _has_answered(session: Any, within_ms: int) -> bool:
    poller = select.poll()
    poller.register(session.pgconn.socket, select.POLLIN)
    return bool(poller.poll(within_ms))


def _is_process_here(info: Any) -> bool:
    """Is this session a process of this machine, which may be stopped? Behind TCP, its process id may be another's."""
    try:
        os.kill(info.backend_pid, 0)
        name = Path(f"/proc/{info.backend_pid}/cmdline").read_bytes()
    except OSError:
        return False
    return info.host.startswith("/") and name.startswith(b"postgres:")
