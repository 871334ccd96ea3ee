"""A command that had to wait is told where it ended: it says that it was sent earlier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from loadtest.findings.gloss import Gloss
from lost_update_lab import Result
from lost_update_lab.model.commands import Step
from lost_update_lab.scenarios.wording import MOST, readable
from lost_update_lab.schedule.pending import WAITED
from lost_update_lab.under_test.operations import VIOLATED

Trial = Callable[..., Result]


def halls(sql: Any) -> None:
    sql.execute("CREATE TABLE IF NOT EXISTS hall (id int PRIMARY KEY, seats int)")
    sql.execute("CREATE TABLE IF NOT EXISTS room (id int PRIMARY KEY, tables int)")
    sql.execute(
        "DELETE FROM hall; DELETE FROM room; INSERT INTO hall VALUES (1, 2); INSERT INTO room VALUES (1, 2)"
    )


def take(who: str, sql: Any) -> None:
    """The joined row is not locked: after the wait its old version is read, beside the new one of the locked row."""
    with sql.transaction():
        seats, tables = sql.execute(
            "SELECT seats, tables FROM hall JOIN room USING (id) WHERE id = 1 FOR UPDATE OF hall"
        ).fetchone()
        sql.execute("UPDATE hall SET seats = %s WHERE id = 1", [seats - 1])
        sql.execute("UPDATE room SET tables = %s WHERE id = 1", [tables - 1])


def test_inside_a_transaction(trial: Trial) -> None:
    result = trial([(take, "Ann"), (take, "Bob")], setup=halls)
    assert result.verdict == VIOLATED
    assert result.schedule
    (waited,) = [move for move in result.schedule.moves if move.reply.endswith(WAITED)]
    assert waited.command.endswith("FOR UPDATE OF hall")
    assert waited.reply == f"seats 1, tables 2{WAITED}"
    assert not any(WAITED in each for each in result.schedule.overwrites)


@pytest.mark.parametrize(
    ("command", "reply", "told"),
    [
        ("UPDATE t SET a = 1", "UPDATE 1", "1 row"),
        ("SELECT a, b FROM t FOR UPDATE", "1, 2", "a 1, b 2"),
        ("SELECT a, b FROM t FOR UPDATE", "LockNotAvailable: no", "LockNotAvailable: no"),
    ],
)
def test_its_reply_is_told_as_that_of_another(command: str, reply: str, told: str) -> None:
    assert readable(command, reply)[1] == told
    assert readable(command, reply + WAITED)[1] == told + WAITED


def test_the_ledger_tells_it_too() -> None:
    def told(reply: str) -> str:
        step = Step(0, "A", "A", "step", "UPDATE ledger_account SET balance = %s ← 1", reply, 0)
        return Gloss("6c1d3bd0").of(step)[1]

    assert told(f"UPDATE 1{WAITED}") == told("UPDATE 1") + WAITED == f"1 row{WAITED}"


@pytest.mark.parametrize(
    "tail",
    ["FOR UPDATE", 'FOR NO KEY UPDATE OF "hall" NOWAIT', "FOR SHARE SKIP LOCKED", "LOCK IN SHARE MODE"],
)
def test_what_it_locks_is_not_cut_off(tail: str) -> None:
    text = f"SELECT count(*) FROM hall WHERE {' AND '.join('id > %s' for _ in range(40))} {tail}"
    told, _ = readable(text, "no row")
    assert len(told) == MOST
    assert told.endswith(f"… {tail}".replace('"', ""))
