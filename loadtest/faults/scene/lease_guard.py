"""Whom the judge itself keeps inside for too long: what came then would be an overrun, and be blamed on the hazard.

    A comes inside ──────────── four fifths of its lease ─── its end
                   let on here: it writes │ or here: it leaves without a write, and the cell is inconclusive

The lease is what the book says, or what is seen on the server if that is shorter (a stranger's lock has a lease of its
own). The same key with the same value and a later end has been renewed: then only the book's counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadtest.faults.scene import sight

if TYPE_CHECKING:
    from loadtest.faults.scene.site import Site
    from loadtest.faults.workers.crew import Worker

#: of the lease: what lasts longer ends it
IN_TIME = 0.8


@dataclass
class LeaseGuard:
    """`lease`: seconds, as the book has it."""

    site: Site
    book: str
    lease: float
    #: who is inside → when its lease ends if nothing renews it, and what was seen of it; by the monotonic clock
    ends: dict[Worker, tuple[float, dict[str, float]]] = field(default_factory=dict)

    def watch(self, worker: Worker) -> None:
        """It has just come inside. Where no lease can be seen (a row lock, a file) it may be let on at any time."""
        end = _came(worker) + self.lease
        if seen := sight.leases(self.site, self.book):
            end = min(end, time.monotonic() + max(seen))
        if seen or time.monotonic() > end - (1 - IN_TIME) * self.lease:
            self.ends[worker] = end, sight.ends(self.site, self.book)

    def limit(self, worker: Worker) -> float | None:
        """Return until when it must go on, by the monotonic clock, or leave. None: at any time."""
        if worker not in self.ends:
            return None
        end, before = self.ends[worker]
        lease = end - _came(worker)
        now = sight.ends(self.site, self.book)
        renewed = any(now.get(key, 0.0) > before[key] + (1 - IN_TIME) * lease for key in before)
        return _came(worker) + IN_TIME * (self.lease if renewed else lease)


def _came(worker: Worker) -> float:
    """When it came inside, by the monotonic clock."""
    return float((worker.inside or {}).get("at", 0.0))
