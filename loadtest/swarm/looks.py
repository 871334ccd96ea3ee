"""An operation that only looks: it reads what the workload names, and notes what it saw."""

from __future__ import annotations

from typing import Any

from ledger.reconcile import Outcome
from loadtest.swarm.answers import outcome_of
from loadtest.swarm.bank import headers


def look(client: Any, url: str, seen: Any) -> tuple[Outcome, dict[str, Any]]:
    """Read `url`; returns the outcome, and what there is to note: what `seen` makes of the answer, or the error."""
    with client.get(url, headers=headers(), name="look", catch_response=True) as answer:
        outcome, said = outcome_of(answer)
        if outcome is Outcome.OK:
            answer.success()
            return outcome, {"seen": seen(said)}
        error = f"look: {answer.status_code} {answer.error or ''}".strip()
        answer.failure(error)
        return outcome, {"error": error}
