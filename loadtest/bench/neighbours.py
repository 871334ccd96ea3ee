"""Other programs that used the machine during a measurement, and so affected its figures.

A load average would count our own processes too. This module takes the CPU time of the machine, minus that of this
process and of its ended children, and the time that the hypervisor gave to other machines (steal).
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

BUSY = 0.15  # CPUs used by others: more than an idle desktop
STOLEN = 0.03  # share of all CPU time
LOOK = 1.0  # seconds


class Neighbours:
    """`cpus`: CPUs used by others, on average. `stolen`: the share of all CPU time that the hypervisor took."""

    cpus = stolen = 0.0

    def warning(self, when: str = "during") -> str | None:
        if self.cpus < BUSY and self.stolen < STOLEN:
            return None
        return (
            f"The machine was busy {when} the run: other programs used {self.cpus:.1f} of {os.cpu_count()} CPUs, the "
            f"hypervisor took {self.stolen:.0%} of the time. The figures are unreliable: run it again on an idle "
            "machine."
        )


@contextmanager
def neighbours() -> Iterator[Neighbours]:
    """Watch during the block. Processes that are started inside must end inside."""
    found, began = Neighbours(), time.monotonic()
    busy, stolen, ours = *of_machine(), _ours()
    yield found
    seconds = time.monotonic() - began
    busy_now, stolen_now = of_machine()
    found.cpus = max(0.0, busy_now - busy - (_ours() - ours)) / seconds
    found.stolen = (stolen_now - stolen) / seconds / (os.cpu_count() or 1)


def before() -> str | None:
    """Watch for a second while nothing of ours works. It is for parts whose servers are not children of this process:
    their CPU time cannot be separated from that of other programs later."""
    with neighbours() as found:
        time.sleep(LOOK)
    return found.warning("before")


def of_machine() -> tuple[float, float]:
    """Return the CPU seconds that all programs used, and those that the hypervisor took, if it reports them."""
    times = psutil.cpu_times()
    return times.user + times.system + times.nice, getattr(times, "steal", 0.0)


def _ours() -> float:
    whose = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))
