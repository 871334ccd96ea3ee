"""What an answer of the ledger says about the money."""

from __future__ import annotations

import json
from typing import Any

from ledger.reconcile import Outcome


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
