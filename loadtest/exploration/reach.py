"""What the explorer cannot touch, with the reason: shown as `not-run`, never silently skipped."""

from __future__ import annotations

import inspect

from ledger.strategies import Locked, find
from loadtest.exploration.job import Job

INSIDE = "it lives inside one {where}, and the explorer's workers stand for {others}"
WITHIN = {
    "in-process": INSIDE.format(where="process", others="processes of their own"),
    "file-lock": INSIDE.format(where="machine's files", others="machines of their own"),
}
NO_GATE = "no gate for {client} yet: the explorer has gates for redis-py and psycopg"
HOW = "write one: docs/explorer.md, 'Other clients'"


def out_of_reach(job: Job) -> tuple[str, str] | None:
    """Return (reason, remedy) when there is nothing to explore, else None."""
    strategy = find(job.strategy)
    if job.strategy in WITHIN:
        return WITHIN[job.strategy], ""
    if issubclass(strategy, Locked) and "zookeeper" in inspect.signature(strategy.factory).parameters:
        return NO_GATE.format(client="kazoo (ZooKeeper)"), HOW
    if strategy.stores == ("mariadb",):
        return NO_GATE.format(client="PyMySQL (MariaDB)"), HOW
    return None
