"""Notices workers that the judge itself kept inside for too long. Otherwise an overrun would be blamed on the hazard.

    A gets inside ──────────── four fifths of its lease ─── its end
           released before: it writes │ released after: it leaves without a write, and the cell is inconclusive

The lease is the book's, or a shorter one that is seen on the server (a lock of the user's may set its own). If the
same key has the same value and a later end, the lease has been renewed: then only the book's counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadtest.faults.scene import sight

if TYPE_CHECKING:
    from loadtest.faults.scene.site import Site
    from loadtest.faults.workers.crew import CrewWorker

#: share of the lease after which the judge is too late
IN_TIME = 0.8
#: share of the lease by which a beat of a worker's pulse may be late: a renewal has no more time in the published
#: proportions (`watchdog`: a look every 6 % of the lease, and it renews when less than 20 % is left)
PUNCTUAL = 0.1


@dataclass
class LeaseGuard:
    """`lease`: the book's, in seconds. `punctual`: as PUNCTUAL."""

    site: Site
    book: str
    lease: float
    punctual: float = PUNCTUAL
    #: worker inside → when its lease ends if nothing renews it, and the keys that were seen; by the monotonic clock
    ends: dict[CrewWorker, tuple[float, dict[str, float]]] = field(default_factory=dict)

    def watch(self, worker: CrewWorker) -> None:
        """`worker` has just got inside. If no lease is visible (a row lock, a file), it may be released at any time."""
        end = _came(worker) + self.lease
        if seen := sight.leases(self.site, self.book):
            end = min(end, time.monotonic() + max(seen))
        if seen or time.monotonic() > end - (1 - IN_TIME) * self.lease:
            self.ends[worker] = end, sight.ends(self.site, self.book)

    def limit(self, worker: CrewWorker) -> float | None:
        """Return until when `worker` may still continue, by the monotonic clock. None: at any time."""
        if worker not in self.ends:
            return None
        end, before = self.ends[worker]
        lease = end - _came(worker)
        now = sight.ends(self.site, self.book)
        renewed = any(now.get(key, 0.0) > before[key] + (1 - IN_TIME) * lease for key in before)
        return _came(worker) + IN_TIME * (self.lease if renewed else lease)

    def may_be_late(self, worker: CrewWorker) -> float | None:
        """Return by how many seconds a beat of its pulse may have been late. None: by any, as no lease was seen, or it
        still has its lease."""
        _, before = self.ends.get(worker, (0.0, {}))
        lost = before.keys() - sight.ends(self.site, self.book).keys()
        return self.punctual * self.lease if lost else None


def _came(worker: CrewWorker) -> float:
    """Return when it got inside, by the monotonic clock."""
    return float((worker.inside or {}).get("at", 0.0))
