"""An operation that only looks: all accounts of the book, and what must never be seen in them."""

from __future__ import annotations

from typing import Any

from loadtest.journal import Journal
from loadtest.swarm.bank import headers
from loadtest.workloads import Workload

OK = 200


def look(client: Any, url: str, workload: Workload, journal: Journal | None) -> None:
    """Read the book at `url`; note in the journal what the workload complains of."""
    with client.get(url, headers=headers(), name="look", catch_response=True) as answer:
        if answer.status_code != OK:
            answer.failure(f"{answer.status_code}")
            return
        balances = {each["account"]: each["balance"] for each in answer.json()["accounts"]}
        complaint = workload.complaint(balances)
        if complaint and journal:
            journal.saw(complaint)
        answer.success()
