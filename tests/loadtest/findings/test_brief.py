"""A counterexample in sentences."""

from __future__ import annotations

from typing import Any

from loadtest.findings.brief import brief


def test_the_lease_of_a_row_is_told_without_the_rows_number() -> None:
    """A sequence gave it: on another database it is another one, and the committed page would not fit."""
    state: dict[str, Any] = {"waiting": {}, "keys": []}
    name, at = "ledger_lockrecord[103].deadline", 10_000_000
    jump = "its clock jumps ahead by 60 s"
    steps = [
        {"kind": "lease", "task": "", "command": name, "at": at, "state": state},
        {"kind": "clock-jump", "task": "postgres", "worker": "", "command": jump, "reply": f"gone: {name}"}
        | {"state": state},
    ]
    told = brief({"opening": state, "steps": steps, "sentences": ["10 lost"], "verdict": "lost"})
    assert told == [
        "At 10 s the lease of `ledger_lockrecord.deadline` is over.",
        f"**`postgres`: {jump} (gone: ledger_lockrecord.deadline).**",
        "10 lost.",
    ]
