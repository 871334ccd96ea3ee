"""What a race expects of the books."""

from __future__ import annotations

from tests.ledger.race.race import Race


def assert_lost(race: Race, amount: int, by: str) -> None:
    """`amount` is gone, in one update, and the books name the writer that overwrote it."""
    books = race.books()
    assert (books.lost_amount, books.lost_updates) == (amount, 1)
    loss = books.worst_loss
    assert loss is not None
    assert loss.overwritten_by is not None
    assert loss.overwritten_by.worker.endswith(f":{by}"), loss.sentence
