"""What workers are known to do is replayed from the recording: the search is the same, schedule by schedule. And a
recording that forgets what it depends on is noticed."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import pytest
from django.db import connections
from django.db.backends.postgresql.base import DatabaseWrapper
from environ import Env

from locks.naive_lock import NaiveLock
from locks.token_lock import TokenLock
from locks.watchdog_lua import WatchdogLuaLock
from locks.watchdog_mended import WatchdogMendedLock
from lost_update_lab.gates.postgres.gate import PostgresCommand
from lost_update_lab.memo import recording
from lost_update_lab.memo.recording import Event
from lost_update_lab.model.bounds import SECOND, Fault, Reduction
from lost_update_lab.model.errors import Unknown
from lost_update_lab.model.workers import Task, WorkerProcess
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.runs.run import Run
from lost_update_lab.schedule import pending
from lost_update_lab.schedule.schedule_id import exactly
from lost_update_lab.search.search import Search
from lost_update_lab.under_test.django_project import DjangoProject
from tests.lost_update_lab import bank
from tests.lost_update_lab.recorded import all_told

Explore = Callable[..., SearchResult]
CRASH = frozenset({Fault.CRASH})


def naive(own: bank.Bank) -> Any:
    return NaiveLock("lock", redis=own.redis)


def token(own: bank.Bank) -> Any:
    return TokenLock("lock", redis=own.redis, lease=2.0)


def watchdog(own: bank.Bank) -> Any:
    return WatchdogLuaLock("lock", redis=own.redis)


def mended(own: bank.Bank) -> Any:
    return WatchdogMendedLock("lock", redis=own.redis)


def in_a_transaction(own: bank.Bank, amount: int) -> str:
    with own.sql.transaction():
        return bank.add(own, amount)


def told(result: SearchResult) -> tuple[Any, ...]:
    return result.counts, result.finals, result.schedules, result.steps, result.states, result.exhausted


@pytest.mark.deep
@pytest.mark.parametrize(
    ("deposit", "kinds"),
    [
        (bank.select_for_update, frozenset({Fault.CRASH, Fault.LOST_REPLY})),
        (in_a_transaction, frozenset({Fault.LOST_REPLY})),
        (bank.opposite_order, CRASH),
        (bank.optimistic, frozenset({Fault.LOST_REPLY})),
        (bank.locked_by(naive), frozenset({Fault.FAILOVER})),
        (bank.locked_by(token), frozenset({Fault.PAUSE})),
        (bank.locked_by(mended), frozenset({Fault.RENEWAL_DIES})),
    ],
)
def test_recorded_or_executed_the_search_is_the_same(explore: Explore, deposit: Any, kinds: Any) -> None:
    bounds = {"faults": 1, "kinds": kinds, "patience": SECOND}
    played, computed = explore(deposit, **bounds), explore(deposit, **bounds, recorded=False)
    assert told(played) == told(computed)
    assert played.exhausted
    assert played.played > 0
    assert computed.played == 0


def ends(result: SearchResult) -> tuple[Any, ...]:
    return set(result.counts), result.finals, result.exhausted


@pytest.mark.deep
def test_a_renewal_that_looks_at_once_has_the_same_ends(explore: Explore) -> None:
    """Its first turn has no wait before it, so the recording and the memory take fewer of its moments for one: they
    pass through more states. The referee, which takes none for one, finds the same words and the same final states."""
    bounds = {"faults": 1, "kinds": frozenset({Fault.RENEWAL_DIES}), "patience": SECOND}
    referee = explore(bank.locked_by(watchdog), **bounds, recorded=False, reduction=Reduction.NONE)
    assert referee.exhausted
    for how in ({}, {"in_memory": False}, {"recorded": False}):
        found = explore(bank.locked_by(watchdog), **bounds, **how)
        assert ends(found) == ends(referee)
        assert found.states <= referee.schedules


def recorded(harness: Any) -> Iterator[Event]:
    """What the workers were seen to stand before."""
    return (segment.event for told in all_told(harness.recording) for segment in told.ways.values())


@pytest.mark.deep
def test_a_command_that_was_cut_off_when_it_was_first_met_is_known_all_the_same(
    harness: Callable[..., Any],
) -> None:
    """A worker stands before it, and the search turns back: that state is known."""
    deposits = harness(bank.locked_by(naive), faults=1, kinds=frozenset({Fault.FAILOVER}), patience=SECOND)
    assert Search(deposits).explore().exhausted
    commands = [event for event in recorded(deposits) if isinstance(event, PostgresCommand)]
    assert commands
    assert all(command.send for command in commands)


def test_a_reply_that_a_client_reads_now_so_now_so_is_left_to_its_code() -> None:
    known, worker = recording.Recording(), WorkerProcess("A", 0)
    known.read(worker, b"GET", ((), {}))
    assert known.reading(worker, b"GET") == ((), {})
    known.read(worker, b"GET", ((), {"disable_decoding": True}))
    known.read(worker, b"GET", ((), {}))
    with pytest.raises(Unknown):
        known.reading(worker, b"GET")
    with pytest.raises(Unknown):
        known.reading(WorkerProcess("B", 1), b"GET")


def impatient(own: bank.Bank, amount: int) -> str:
    """A worker that has waited too long, by its own clock, acknowledges what it has not done."""
    begun = time.monotonic()
    own.sql.execute("SELECT 1")
    if time.monotonic() - begun > 0.05:
        return "ok"
    time.sleep(0.08)
    return bank.select_for_update(own, amount)


def forgets_replies(run: Run, task: Task, what: Hashable) -> None:
    task.heard = ""
    if run.recorder:
        run.recorder.heard(task)


def test_a_recording_that_forgets_the_replies_is_noticed(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    referee = explore(bank.no_lock, reduction=Reduction.NONE, recorded=False)
    monkeypatch.setattr(pending, "hear", forgets_replies)
    forgetful = explore(bank.no_lock)
    assert not forgetful.exhausted or forgetful.finals != referee.finals


@pytest.mark.deep
def test_a_recording_that_forgets_the_clocks_is_noticed(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    referee = explore(impatient, reduction=Reduction.NONE, recorded=False)
    recorded = explore(impatient)
    assert (recorded.worst, recorded.finals) == (referee.worst, referee.finals) == ("lost", referee.finals)
    monkeypatch.setattr(recording, "CLOCKS", frozenset())
    forgetful = explore(impatient)
    assert not forgetful.exhausted or forgetful.finals != referee.finals


def test_a_worker_that_acts_differently_on_the_same_replies_is_noticed(explore: Explore) -> None:
    """Workers that share memory past the gates are no workers on two machines."""
    shared: list[int] = []

    def by_chance(own: bank.Bank, amount: int) -> str:
        shared.append(amount)
        if len(shared) % 3 == 0:
            own.sql.execute("SELECT 2")
        return bank.add(own, amount)

    result = explore(by_chance)
    assert not result.exhausted
    assert "not repeatable" in result.cause


def overtaken(own: bank.Bank) -> bool:
    """Did the other one come in between? No run before a search sees that."""
    return (own.redis.incr("first"), own.redis.incr("second")) == (1, 2)


def connects_late(own: bank.Bank, amount: int) -> str:
    """Its connection is made in the middle of the search, where it never received this before."""
    return bank.add(own, amount) if overtaken(own) else "nothing"


def connects_late_by_django(own: bank.Bank, amount: int) -> str:
    """Django looks at a clock besides, and sets the time zone of its session."""
    if overtaken(own):
        if not hasattr(own.own, "django"):
            address = Env.db_url_config(own.database)
            own.own.django = DatabaseWrapper(
                {**connections.settings["default"], **address, "CONN_MAX_AGE": 60}
            )
        with own.own.django.cursor() as cursor:
            cursor.execute("UPDATE account SET balance = %s WHERE id = 1", [100 + amount])
    return "nothing"


def greets_once(own: bank.Bank, amount: int) -> str:
    """The first one's client sends something more where it is used for the first time."""
    if overtaken(own) and amount == 10 and not vars(own).setdefault("greeted", False):
        vars(own)["greeted"] = bool(own.redis.ping())
    own.redis.set("done", amount)
    return "nothing"


LOST = {
    "faults": 1,
    "kinds": frozenset({Fault.LOST_REPLY}),
}  # a worker that hears of one runs its real code once more


@pytest.mark.parametrize("late", [connects_late, connects_late_by_django])
def test_a_connection_that_is_made_in_the_search_is_no_step_of_it(
    harness: Callable[..., Any], late: Any, django_db_blocker: Any
) -> None:
    made = harness(late, **LOST)
    DjangoProject().install(made.patches)
    with django_db_blocker.unblock():  # of this test's own servers
        found = Search(made).explore()
    assert found.exhausted, found.cause
    assert found.played > 0, "the control: something was known"


def test_what_cold_clients_did_before_the_search_is_not_taken_for_known(harness: Callable[..., Any]) -> None:
    made = harness(greets_once, **LOST)
    run = made.run(exactly((0, 1, 0)), {})  # as when it is found out whether a lock asks for replicas
    assert any(step.command == "PING" for step in run.steps)
    assert (found := Search(made).explore()).exhausted, found.cause
