"""What the explorer cannot touch, with the reason: shown as `not-run`, never silently skipped."""

from __future__ import annotations

import inspect

from ledger.strategies import Locked, find
from ledger.strategies.single_writer import SingleWriter
from loadtest.explorer.job import Job

INSIDE = "it lives inside one {where}, and the explorer's workers stand for {others}"
WITHIN = {
    "in-process": INSIDE.format(where="process", others="processes of their own"),
    "file-lock": INSIDE.format(where="machine's files", others="machines of their own"),
}
ITS_CLOCK = {
    "segmented-lock-mended": "its leases go by PostgreSQL's clock, which the explorer cannot move",
}
NO_GATE = "no gate for {client} yet: the explorer has gates for redis-py and psycopg"
HOW = "write one: docs/explorer.md, 'Other clients'"


def out_of_reach(job: Job) -> tuple[str, str] | None:
    """Return (reason, remedy) when there is nothing to explore, else None."""
    strategy = find(job.strategy)
    if why := {**WITHIN, **ITS_CLOCK}.get(job.strategy):
        return why, ""
    if issubclass(strategy, Locked) and "zookeeper" in inspect.signature(strategy.factory).parameters:
        return NO_GATE.format(client="kazoo (ZooKeeper)"), HOW
    if issubclass(strategy, SingleWriter):
        return NO_GATE.format(client="the socket by which callers ask the owner"), HOW
    if strategy.stores == ("mariadb",):
        return NO_GATE.format(client="PyMySQL (MariaDB)"), HOW
    return None
