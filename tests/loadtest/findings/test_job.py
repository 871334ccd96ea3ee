"""What a strategy claims belongs to the store of its accounts."""

from __future__ import annotations

from ledger.strategies import STRATEGIES
from loadtest.findings.job import Job
from locks.hazards import Hazard


def test_on_mariadb_a_pause_is_claimed_where_nobody_waits_for_a_row() -> None:
    """Others wait for the lock's own key or file there, and for no row, which InnoDB would refuse after 50 s."""
    there = [slug for slug, each in STRATEGIES.items() if "mariadb" in each.stores]
    claimed = {slug for slug in there if Hazard.PAUSE in Job(strategy=slug, store="mariadb").claims}
    assert claimed == {"setnx", "file-lock"}
    assert {"select-for-update", "lock-table", "fenced"} <= {
        slug for slug in there if Hazard.PAUSE in Job(strategy=slug).claims
    }
