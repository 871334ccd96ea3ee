"""What the explorer cannot touch says why, and what would decide instead. So does a search that noticed it late."""

from __future__ import annotations

import pytest

from ledger.stores import STORES
from ledger.strategies import STRATEGIES
from loadtest.explorer.campaign import _result
from loadtest.explorer.lane import _told
from loadtest.explorer.reach import out_of_reach
from loadtest.findings.job import Job
from loadtest.verdict.words import Word
from lost_update_lab.model.errors import Elsewhere


@pytest.mark.parametrize("one_machine", [False, True])
@pytest.mark.parametrize("store", ["", *STORES])
def test_what_is_out_of_reach_names_what_is_not(store: str, one_machine: bool) -> None:
    jobs = [Job(strategy=slug, store=store, one_machine=one_machine) for slug in STRATEGIES]
    found = {job.strategy: why for job in jobs if (why := out_of_reach(job))}
    assert found["in-process"]
    assert ("file-lock" in found) != one_machine
    assert [slug for slug, (reason, remedy) in found.items() if not (reason and remedy)] == []


def test_a_search_that_noticed_late_shows_what_it_had_seen() -> None:
    error = Elsewhere("it opens the file x.lock for writing", trace="  File …")
    error.seen = {"schedules": 3, "states": 9, "steps": 30, "words": {"lost": 1, "unbroken": 2}}
    result = _result(Job(strategy="token"), _told(error), Word.LOST)
    assert result["verdict"] == "not-run"
    assert result["reason"].endswith(
        "until then 3 schedules were executed (1 lost, 2 unbroken), which prove nothing"
    )
    assert (result["remedy"], result["trace"]) == (error.remedy, "  File …")
    assert (result["schedules"], result["states"], result["words"]) == (3, 9, {"lost": 1, "unbroken": 2})
