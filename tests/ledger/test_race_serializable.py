"""`serializable` on both databases: the rule over two rows that it keeps, and the retries that break it.

On PostgreSQL the second writer hears of the first one; on MariaDB both readers share-lock the row, and whom InnoDB
ends is its own choice. So each race there is told by what it leaves, and not by who was first.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import DatabaseError

from ledger.posting import Busy, Posting, Refused
from tests.ledger.race import Race, State, Worker
from tests.ledger.test_race_outsiders import together_they_keep_100

pytestmark = pytest.mark.usefixtures("committed_db")
BOTH = pytest.mark.parametrize("store", ["postgres", "mariadb"], indirect=True)


def meet(race: Race, habit: Callable[[Worker], Worker] = lambda worker: worker) -> list[Worker]:
    """Two deposits that have both read before either writes, run to their ends; how they ended is theirs."""
    workers = [habit(race.worker("A", +10)), habit(race.worker("B", +20))]
    return at_once(workers)


def at_once(workers: list[Worker]) -> list[Worker]:
    for worker in workers:
        worker.runs_to("think")
    for worker in workers:  # on MariaDB the first waits for the second's share lock, and one of them is ended
        worker.tries("the end")
    for worker in workers:
        assert worker.tries("the end") is State.DONE
    return workers


def test_two_readers_on_mariadb_deadlock_and_one_starts_again(mariadb_server: None) -> None:
    with Race("serializable", store="mariadb") as race:
        answers = [worker.finishes() for worker in meet(race)]
        assert sorted(answer.retries for answer in answers) == [0, 1]
        assert (race.balance(), race.kept()) == (130, True)


def test_without_retries_the_victim_on_mariadb_is_busy(mariadb_server: None) -> None:
    with Race("serializable", store="mariadb", retries=0) as race:
        errors = [type(worker.error) for worker in meet(race)]
        assert sorted(errors, key=str) == sorted([Busy, type(None)], key=str)
        assert race.kept()


def test_a_rule_over_two_rows_is_kept_on_mariadb(mariadb_server: None) -> None:
    with Race("serializable", store="mariadb") as race:
        workers = [together_they_keep_100(race.worker(name, -100, to=name)) for name in "AB"]
        errors = [type(worker.error) for worker in at_once(workers)]
        assert sorted(errors, key=str) == sorted([Refused, type(None)], key=str)
        assert race.balance("A") + race.balance("B") == 100


def keeps_what_it_has_read(worker: Worker) -> Worker:
    """It looked before the transaction that failed, and does not look again."""
    store: Any = worker.strategy.store
    read, kept = store.read, dict[str, Any]()

    def once(posting: Posting) -> Any:
        if not kept:
            kept.update(read(posting))
        return kept

    store.read = once
    return worker


@BOTH
def test_a_retry_that_does_not_begin_at_begin_overwrites_who_was_faster(store: str) -> None:
    with Race("serializable", store=store) as race:
        late = max(meet(race, keeps_what_it_has_read), key=lambda worker: worker.finishes().retries)
        books = race.books()
        (faster,) = (worker for worker in race.workers if worker is not late)
        assert (books.lost_amount, books.lost_updates) == (faster.posting.lines[0].amount, 1)
        assert books.worst_loss is not None
        assert books.worst_loss.overwritten_by is not None
        assert books.worst_loss.overwritten_by.worker.endswith(f":{late.name}")


def swallows(worker: Worker) -> Worker:
    """The error of the write is logged somewhere, and the transaction is committed: what is left of it, nothing."""
    store: Any = worker.strategy.store
    put = store.put

    def quietly(*changes: Any) -> None:
        with suppress(DatabaseError):
            put(*changes)

    store.put = quietly
    return worker


@BOTH
def test_an_error_that_is_swallowed_is_a_posting_that_nobody_wrote(store: str) -> None:
    with Race("serializable", store=store) as race:
        for worker in meet(race, swallows):
            worker.finishes()
        books = race.books()
        assert (books.lost_updates, books.lost_without_trace) == (1, 1)
        assert race.balance() + books.lost_amount == 130
