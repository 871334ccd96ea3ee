"""What a reply of the ledger says about the money, and an operation that only reads."""

from __future__ import annotations

import json
from typing import Any

from ledger.reconcile import ClientOutcome
from loadtest.swarm.bank import headers


def outcome_of(answer: Any) -> tuple[ClientOutcome, dict[str, Any]]:
    """Return what the ledger's reply says about the money: 2xx is applied, `"applied": "no"` is not, else unknown."""
    try:
        said = json.loads(answer.text or "")
    except ValueError:
        said = {}
    if not isinstance(said, dict):
        said = {}
    if answer.status_code in (200, 201):
        return ClientOutcome.OK, said
    return (ClientOutcome.FAIL if said.get("applied") == "no" else ClientOutcome.INFO), said


def look(client: Any, url: str, seen: Any) -> tuple[ClientOutcome, dict[str, Any]]:
    """Read `url` and change nothing. Return the outcome, and what to record: what `seen` makes of the reply, or the
    error."""
    with client.get(url, headers=headers(), name="look", catch_response=True) as answer:
        outcome, said = outcome_of(answer)
        if outcome is ClientOutcome.OK:
            answer.success()
            return outcome, {"seen": seen(said)}
        error = f"look: {answer.status_code} {answer.error or ''}".strip()
        answer.failure(error)
        return outcome, {"error": error}
