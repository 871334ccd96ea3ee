"""Who waits in line for locks of PostgreSQL: let go one after the other, so that the same one comes first each time.

Who is let go works on in the server by itself. Its UPDATE may find another version and let go of the next one, or lock
the new version and make the next one wait again. Two that are let go in the same moment race for it, and the operating
system says who wins: with three workers the same choices gave now this schedule, now that. So whoever is not the first
in the line stands still (SIGSTOP) until nobody blocks it; then it goes on alone until it has answered, or waits again.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from lost_update_lab.servers.postgres.locks import NEWS_WITHIN_MS, Edges

K = TypeVar("K")
_SESSIONS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"


class Line:
    """`blockers_of`: asks the server who blocks these process ids; `admin`: a connection to it."""

    def __init__(self, admin: Any, blockers_of: Callable[[list[int]], Edges]) -> None:
        self._blockers_of = blockers_of
        self._is_here = _is_process_here(admin.info)
        #: an explorer that was killed in the middle of a schedule has left some
        self._still = {pid for (pid,) in admin.execute(_SESSIONS)} if self._is_here else set[int]()
        self.end()

    def settle(self, sessions: Mapping[K, Any]) -> tuple[list[K], Edges]:
        """`sessions`: those that wait, the first one first. Return those whose commands are at their end, and who
        blocks the others. A moment in which nobody seems to block somebody who will wait again does not count."""
        pids = {key: session.info.backend_pid for key, session in sessions.items()}
        patience = NEWS_WITHIN_MS
        while True:
            answered = {key for key, session in sessions.items() if _has_answered(session, 0)}
            blockers = self._blockers_of(list(pids.values()))
            free = [key for key, pid in pids.items() if not blockers[pid]]
            silent = next((key for key in free if key not in answered), None)
            if silent is None:
                for pid in list(pids.values())[1:]:
                    if blockers[pid]:
                        self._stand_still(pid)
                return free, blockers
            self.go_on(pids[silent])
            if not _has_answered(sessions[silent], patience):
                patience *= 2  # a busy machine: it will come

    def _stand_still(self, pid: int) -> None:
        if self._is_here and pid not in self._still:
            os.kill(pid, signal.SIGSTOP)
            self._still.add(pid)

    def go_on(self, pid: int) -> None:
        if pid in self._still:
            self._still.remove(pid)
            with suppress(ProcessLookupError):  # it was ended
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        for pid in list(self._still):
            self.go_on(pid)


def _has_answered(session: Any, within_ms: int) -> bool:
    poller = select.poll()
    poller.register(session.pgconn.socket, select.POLLIN)
    return bool(poller.poll(within_ms))


def _is_process_here(info: Any) -> bool:
    """Is this session a process of this machine, which may be stopped? One behind TCP may have anybody's number."""
    try:
        os.kill(info.backend_pid, 0)
        name = Path(f"/proc/{info.backend_pid}/cmdline").read_bytes()
    except OSError:
        return False
    return info.host.startswith("/") and name.startswith(b"postgres:")
