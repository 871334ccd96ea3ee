"""The article's lock table on a real MariaDB, every order of two postings: which error who meets under which level."""

from __future__ import annotations

import multiprocessing
import sys
from typing import Any

import pytest

from loadtest.explorer.lanes import Lanes
from loadtest.findings.job import Job
from lost_update_lab.embedded import mariadb
from tests.loadtest.explorer.lock_table import search


@pytest.mark.deep(short=False)
def test_the_lock_table_under_each_level(django_db_blocker: Any) -> None:
    """Under REPEATABLE READ two gap locks on the row that is not there yet are a circle: one caller is aborted, and
    refused. Under READ COMMITTED both insert, and the second one's duplicate key only means "not granted"."""
    if reason := mariadb.available():
        pytest.skip(reason)
    context = multiprocessing.get_context("spawn")
    with django_db_blocker.unblock(), Lanes(1, mariadb=True) as lanes:
        migrated = Job.of_replay_id("no-lock/l@mariadb/2a")  # the lane answers once its MariaDB is
        [(_, answer)] = lanes.explore([migrated])
        assert answer["result"]["reproduced"]
        ours, theirs = context.Pipe()
        given = (theirs, lanes._lanes[0].environment, sys.path, ("REPEATABLE READ", "READ COMMITTED"))
        process = context.Process(target=search, args=given, daemon=True)
        process.start()
        theirs.close()
        found = ours.recv()
        process.join(100)
    exhausted, words, errors, told = found["REPEATABLE READ"]
    assert (exhausted, words, errors) == (True, ["refused", "unbroken"], ["1213"])
    assert "Deadlock found" in told
    assert found["READ COMMITTED"] == (True, ["unbroken"], ["1062"], "")
