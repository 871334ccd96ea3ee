"""What the explorer cannot touch, with the reason: shown as `not-run`, never silently skipped."""

from __future__ import annotations

from ledger.strategies import find
from loadtest.findings.job import Job
from loadtest.trials.dependencies import asked, factory_of
from lost_update_lab.embedded import mariadb

INSIDE = {
    "process": "it lives inside one process, and the explorer's workers stand for processes of their own",
    "machine": "it lives inside one machine's files, and the explorer's workers stand for machines of their own",
}
#: the remedies where the explorer has none
ONE_MACHINE = "--one-machine: workers are processes of one host then"
BY_REAL_ONES = "`manage.py compare` and `manage.py faults` run it in real processes"
NO_GATE = "no gate for {client} yet: the explorer has gates for redis-py, psycopg, PyMySQL and aiomysql"
HOW = "write one: docs/explorer.md, 'Other clients'"
BY_FAULTS = "manage.py faults tries it; docs/explorer.md, 'ZooKeeper', says what a gate would have to do"


def out_of_reach(job: Job) -> tuple[str, str] | None:
    """Return (reason, remedy) when there is nothing to explore, else None."""
    strategy, lock = find(job.strategy), factory_of(job.strategy)
    where = getattr(lock, "within", "")
    if where and not (where == "machine" and job.one_machine):
        return INSIDE[where], ONE_MACHINE if where == "machine" else BY_REAL_ONES
    if "zookeeper" in asked(job.strategy):
        return NO_GATE.format(client="kazoo (ZooKeeper)"), BY_FAULTS
    if strategy.talks_by:
        return NO_GATE.format(client=strategy.talks_by), HOW
    if job.store and job.store not in strategy.stores:
        stores = ", ".join(strategy.stores)
        return f"it keeps no accounts on {job.store}: only on {stores}", f"--store {strategy.stores[0]}"
    if job.where == "mariadb":
        return _without_mariadb(job)
    return None


def _without_mariadb(job: Job) -> tuple[str, str] | None:
    if missing := mariadb.available():
        return "its accounts are on MariaDB, which is not installed", missing
    if not job.store:
        return "its accounts are on MariaDB", "manage.py explore --store mariadb"
    return None
