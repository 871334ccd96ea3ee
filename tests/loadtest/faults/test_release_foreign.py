"""A generator-based lock that was never taken cannot be released: ending such a generator starts it."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from redis import Redis

from ledger.books import open_book
from loadtest.faults.workers.deeds import release_foreign


@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize(
    ("lock", "answer"), [("of_a_generator", ""), ("right", "refused it: "), ("broken", "")]
)
def test_a_foreign_release_takes_no_lock(lock: str, answer: str, redis_client: Redis) -> None:
    book = open_book(f"tests.loadtest.third_party:{lock}", [("A0001", 0, None)], trusted=True)
    told = release_foreign(cast("Any", SimpleNamespace(book=book)))
    assert told.startswith(answer)
    assert bool(told) is bool(answer)
    assert not redis_client.exists(f"{book.pk}:A0001")
