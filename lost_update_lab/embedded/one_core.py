"""Keep a search and its servers to one core.

Only one of them works at a time: the thread whose turn it is, or the server for whose answer it waits. A turn that
passes to another core pays for a wake-up there. On a virtual machine with two cores, one core searches the cases of
`python -m loadtest.bench.own_code` 1.2 times as fast as both (1.03 to 1.37, 9 rounds of 8 searches of each kind, in
turns). Where the system cannot pin (macOS), or does not say what runs where (no /proc), nothing is done.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STAT, THREADS = Path("/proc/thread-self/stat"), Path("/proc/self/task")
#: the process ids of the servers that this process has started, and that run
STARTED: set[int] = set()
os.register_at_fork(after_in_child=STARTED.clear)


@contextmanager
def one_core() -> Iterator[None]:
    """In this block, this thread and the servers that this process has started run on one core, and so do the threads
    and sessions that begin there."""
    if len(cores := _cores()) < 2:
        yield
        return
    core = _core_of_this_thread()
    chosen = {core if core in cores else min(cores)}
    servers = dict.fromkeys(_with_children(STARTED), cores)
    for pid in servers:
        with suppress(OSError):  # it has ended
            servers[pid] = os.sched_getaffinity(pid)
    _run_on(chosen, [0, *servers])
    try:
        yield
    finally:
        for pid in _with_children(STARTED):
            _run_on(servers.get(pid, cores), [pid])
        _run_on(cores, [thread for thread in _threads() if _runs_on(thread, chosen)])


def _cores() -> set[int]:
    """Those on which this thread may run. Empty: it cannot be kept to one here."""
    can = hasattr(os, "sched_setaffinity") and STAT.exists() and THREADS.exists()
    return os.sched_getaffinity(0) if can else set()


def _run_on(cores: set[int], pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(OSError):  # it has ended
            os.sched_setaffinity(pid, cores)


def _runs_on(thread: int, cores: set[int]) -> bool:
    with suppress(OSError):
        return os.sched_getaffinity(thread) == cores
    return False


def _core_of_this_thread() -> int:
    """… on which it ran last: another busy process is most likely on another one."""
    after_the_name = STAT.read_text().rpartition(")")[2]
    return int(after_the_name.split()[36])  # proc_pid_stat(5), field 39


def _with_children(pids: Iterable[int]) -> Iterator[int]:
    """PostgreSQL has a process for each session."""
    for pid in list(pids):  # another thread may start a server
        yield pid
        with suppress(OSError):  # it has ended, or the kernel does not list children
            yield from map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def _threads() -> list[int]:
    return [int(thread.name) for thread in THREADS.iterdir()]
