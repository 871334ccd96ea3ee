"""bench waiting: every caller is served, and the server sees the polls."""

from __future__ import annotations

import pytest

from loadtest.bench import waiting
from loadtest.bench.measured import Measured


@pytest.mark.parametrize("slug", ["token", "token-pubsub"])
def test_all_waiters_are_served(slug: str) -> None:
    row = waiting.watch(slug, waiters=3, seconds=0.3)
    assert row.keys() == {"commands_per_s", "handover_ms"}
    assert (row["commands_per_s"] > 0) or slug != "token", "three who ask every 50 ms"


def test_a_lock_that_fails_is_a_row_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "CONTENDERS", ("nobody",))
    found = Measured()
    waiting.run(waiting.WaitingPlan(waiters=(2,), seconds=0.1), found)
    assert [row["verdict"] for row in found.results] == ["inconclusive"]
    (table,) = waiting.tables(found.results)
    assert table.row_count == 1
