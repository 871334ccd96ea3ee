"""The lanes as a person reads them: polls folded, pauses shown, and what a step has changed on the servers."""

from __future__ import annotations

from typing import Any

from lost_update_lab.telling.diagram import diagram
from lost_update_lab.telling.folding import folded
from lost_update_lab.telling.picture import rows


def state(balance: int = 100, waiting: str = "", **owners: str) -> dict[str, Any]:
    keys = [
        {"server": "redis", "key": key, "value": "1", "ttl_ms": 5000, "by": by} for key, by in owners.items()
    ]
    return {
        "balances": {"A0001": balance},
        "rows": {},
        "keys": keys,
        "waiting": {waiting: "SELECT"} if waiting else {},
    }


def step(worker: str, command: str, now: dict[str, Any], kind: str = "step", at: int = 0) -> dict[str, Any]:
    told = {"at": at, "worker": worker, "task": worker, "kind": kind, "command": command, "reply": ""}
    return {**told, "faults": 0, "sentence": f"{worker} {command}", "state": now}


STEPS = [
    step("A", "SET lock", state(lock="A")),
    step("B", "SELECT", state(lock="A", waiting="B")),
    step("A", "stands still", state(lock="A"), "pause"),
    step("", "lock", state(), "lease", at=5_000_000),
    step("B", "UPDATE", state(120), at=5_000_000),
    step("A", "goes on", state(120), "resume", at=5_000_000),
    step("A", "crashes", state(120), "crash", at=5_000_000),
    step("B", "DEL lock", state(120), at=5_000_000),
]


def test_a_row_says_how_the_others_stand_and_what_has_changed() -> None:
    told = rows(STEPS, state())
    assert [row.lanes["A"] for row in told] == ["", "", "stands", "stands", "stands", "", "dead", "dead"]
    assert told[1].lanes["B"] == "waits"
    assert [row.effects for row in told if row.effects] == [
        ["key lock: A's, 5 s left"],
        ["balance 100 → 120"],
    ]
    assert [row.step["kind"] for row in told if row.fault] == ["pause", "crash"]


def test_an_overwritten_lock_says_whose_it_was() -> None:
    told = rows([step("A", "SET lock", state(lock="A")), step("B", "SET lock", state(lock="B"))], state())
    assert told[1].effects == ["key lock: B's, 5 s left, was A's"]


def test_without_states_there_are_still_lanes() -> None:
    told = rows([{**each, "state": None} for each in STEPS], None)
    assert not any(row.effects for row in told)


def test_polls_are_folded_and_nothing_else() -> None:
    polls = [step("B", name, state(), at=at) for at in range(9) for name in ("GET", "PTTL")]
    told = folded([*STEPS, *polls])
    assert told[: len(STEPS)] == STEPS
    assert [each["command"] for each in told[len(STEPS) :]] == [
        "GET",
        "PTTL",
        "the same 8 times more, until 8e-06 s",
    ]
    assert folded(polls[:4]) == polls[:4]  # twice is not yet often


def test_the_diagram_fits_the_terminal() -> None:
    for width in (80, 140):
        lines = diagram(STEPS, state(), width).splitlines()
        assert max(map(len, lines)) <= max(width, 7 + 3 * 31 + 3)
        assert any("↯ crashes" in line for line in lines)
        assert any("stands still" in line and "UPDATE" in line for line in lines)
        assert any("balance 100 → 120" in line for line in lines)
