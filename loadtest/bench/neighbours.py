"""Who else used the machine while something was measured: then the figures are theirs, too.

A load average counts our own processes as well. So here: the CPU time that the machine spent, less what this process
and the children that it has seen end spent, and what the hypervisor gave to other machines (steal).
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

BUSY = 0.15  # CPUs, of others: more than a desktop that idles
STOLEN = 0.03  # of all CPU time
LOOK = 1.0  # seconds


class Neighbours:
    """`cpus`: that others used, on average. `stolen`: the share of all CPU time that the hypervisor took."""

    cpus = stolen = 0.0

    def warning(self, when: str = "during") -> str | None:
        if self.cpus < BUSY and self.stolen < STOLEN:
            return None
        return (
            f"The machine was busy {when} the run: other programs used {self.cpus:.1f} of {os.cpu_count()} CPUs, the "
            f"hypervisor took {self.stolen:.0%} of the time. The figures say little then: run it again alone."
        )


@contextmanager
def neighbours() -> Iterator[Neighbours]:
    """What is started inside must have ended inside."""
    found, began = Neighbours(), time.monotonic()
    busy, stolen, ours = *_machine(), _ours()
    yield found
    seconds = time.monotonic() - began
    busy_now, stolen_now = _machine()
    found.cpus = max(0.0, busy_now - busy - (_ours() - ours)) / seconds
    found.stolen = (stolen_now - stolen) / seconds / (os.cpu_count() or 1)


def before() -> str | None:
    """Look for a second, while nothing of ours works. For parts whose servers are no children of this process: what
    these use later cannot be told from what others use."""
    with neighbours() as found:
        time.sleep(LOOK)
    return found.warning("before")


def _machine() -> tuple[float, float]:
    """Return the seconds of CPU that all programs used, and those that the hypervisor took (where it says so)."""
    times = psutil.cpu_times()
    return times.user + times.system + times.nice, getattr(times, "steal", 0.0)


def _ours() -> float:
    whose = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))
