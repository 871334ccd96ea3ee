"""What an answer of the ledger says about the money, and an operation that only reads one."""

from __future__ import annotations

import json
from typing import Any

from ledger.reconcile import Outcome
from loadtest.swarm.bank import headers


def outcome_of(answer: Any) -> tuple[Outcome, dict[str, Any]]:
    """What the ledger's answer says about the money: 2xx applied, `"applied": "no"` not applied, else unknown."""
    try:
        said = json.loads(answer.text or "")
    except ValueError:
        said = {}
    if not isinstance(said, dict):
        said = {}
    if answer.status_code in (200, 201):
        return Outcome.OK, said
    return (Outcome.FAIL if said.get("applied") == "no" else Outcome.INFO), said


def look(client: Any, url: str, seen: Any) -> tuple[Outcome, dict[str, Any]]:
    """Read `url`, changing nothing. Return the outcome, and what to note: what `seen` makes of the answer, or the
    error."""
    with client.get(url, headers=headers(), name="look", catch_response=True) as answer:
        outcome, said = outcome_of(answer)
        if outcome is Outcome.OK:
            answer.success()
            return outcome, {"seen": seen(said)}
        error = f"look: {answer.status_code} {answer.error or ''}".strip()
        answer.failure(error)
        return outcome, {"error": error}
