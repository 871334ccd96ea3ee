"""Commands and replies as people read them: nothing that the server did not say."""

from __future__ import annotations

import pytest

from loadtest.findings.gloss import Gloss, plain
from lost_update_lab.model.commands import Step
from lost_update_lab.schedule.pending import LOOKED

BOOK = "6c1d3bd0-6d1f-4f3b-9f43-0c9f0f3a2b11"


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        (
            "INSERT INTO ledger_lockrecord (name, owner) VALUES (%s, %s) ← x, A",
            "UniqueViolation: duplicate key",
        ),
        ("INSERT INTO ledger_entry (amount, token) VALUES (%s, %s) ← 10, x", LOOKED),
        (
            "UPDATE ledger_account SET balance = %s WHERE id = 1 ← 110",
            "SerializationFailure: could not serialize",
        ),
        (
            "SELECT balance, version FROM ledger_account WHERE id = 1 FOR UPDATE",
            "DeadlockDetected: deadlock detected",
        ),
    ],
)
def test_what_is_no_row(command: str, reply: str) -> None:
    assert Gloss(BOOK).of(Step(0, "A", "A", "step", command, reply, 0))[1] == reply


def test_the_book_is_in_no_name() -> None:
    told = Gloss(BOOK).of(Step(0, "", "redis", "clock-jump", "its clock jumps", f"gone: {BOOK}:A0001", 0))
    assert told == ("its clock jumps", "gone: A0001")
    assert Gloss(BOOK).sentence(f"vm:1000002:main gave up on {BOOK}:A0001") == "B gave up on A0001"


@pytest.mark.parametrize("thread", [140414470493888, 140613013116608])
def test_a_threads_number_is_left_out(thread: int) -> None:
    """It is another one in each process, and a page would never be fresh. An amount stays."""
    token = f"{thread}:e24c4d1a-7b1e-4c5d-9a3f-0123456789ab"
    step = Step(0, "", "redis", "failover", "the replica takes over", f"gone: {token}, 140414470493888", 0)
    assert "gone: …:e24c…, 140414470493888" in " ".join(Gloss(BOOK).of(step))


@pytest.mark.parametrize(
    ("reconciled", "told"),
    [
        (
            "vm:1000001:main and vm:1000002:main both read 100 (at 17:46:40.000 and 17:46:40.000 UTC). "
            "vm:1000001:main wrote 110 (+10) at 17:46:40.000.",
            "A and B both read 100. A wrote 110 (+10).",
        ),
        (
            "vm:1000001:main read 100 at 17:46:40.000 UTC and wrote 110 (+10) at 17:46:51.100",
            "A read 100 at 0 s and wrote 110 (+10) at 11.1 s",
        ),
        ("web-1:4711 waits", "web-1:4711 waits"),
    ],
    ids=["it stood still", "time passed", "nothing to do"],
)
def test_times_are_those_of_the_schedule_and_left_out_when_they_are_equal(reconciled: str, told: str) -> None:
    assert plain(reconciled) == told
