"""The right locks: what each promises beyond the common cases."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from loadtest.servers import Valkey
from locks import LOCKS, LockError, LockLost, LockNotHeld, LockUnavailable, build
from tests.contract.arena import Arena, renewers
from tests.contract.fight import Fight
from tests.contract.promises import wait_until
from tests.contract.quiet import QuietFairLock
from tests.contract.site import UNHURRIED

SEMAPHORE, MENDED = LOCKS["semaphore"], LOCKS["reentrant-mended"]
PUBSUB, QUEUE = LOCKS["token-pubsub"], LOCKS["token-queue"]


@pytest.mark.parametrize(
    "slug", ["compare-and-delete", "semaphore", "token-pubsub", "token-queue", "fenced", "fair-lock"]
)
def test_a_key_with_other_contents_is_reported(arena: Arena, slug: str) -> None:
    """It waited for ever, or raised an error of the client library."""
    with arena.fight(LOCKS[slug]) as fight:
        arena.admins[0].hset(fight.name, "somebody's", 1)
        with pytest.raises(LockError, match="holds something else"):
            fight.party().gets_in()


def test_semaphore_lets_in_as_many_as_it_has_permits(arena: Arena) -> None:
    with arena.fight(SEMAPHORE, permits=2, lease=UNHURRIED) as fight:
        first, second = fight.holder(), fight.holder()
        fight.closed("a third one got in")
        first.lock.release()
        third = fight.holder()
        fight.closed("one left, and two came")
        with pytest.raises(LockNotHeld):
            first.lock.release()
        for party in (second, third):
            party.lock.release()
        assert not arena.keys(fight.name), "nothing is left behind"


def test_semaphore_one_object_has_one_permit(arena: Arena) -> None:
    """It forgot the first one, which could not be released before its lease was over."""
    with arena.fight(SEMAPHORE, permits=2, lease=UNHURRIED) as fight:
        lock = fight.holder().lock
        assert not lock.acquire(timeout=0)
        lock.release()
        assert not arena.keys(fight.name)
        with lock:
            assert lock.held


def test_semaphore_a_short_lease_does_not_end_a_long_one(arena: Arena) -> None:
    with arena.fight(SEMAPHORE, permits=2, lease=10 * UNHURRIED) as fight:
        fight.holder()
        hasty = fight.party(lease=UNHURRIED)
        assert hasty.gets_in()
        assert fight.remains() > 5 * UNHURRIED
        hasty.lock.extend()
        assert fight.remains() > 5 * UNHURRIED


def test_mended_a_nested_acquire_finds_out_that_the_lock_was_lost(arena: Arena) -> None:
    """Else it would enter a free lock, and what another holder wrote since then would be gone in silence."""
    for free in (True, False):
        with arena.fight(MENDED, lease=UNHURRIED) as fight:
            holder, other = fight.holder(), fight.party()
            fight.forgets()
            assert other.gets_in()
            if free:
                other.lock.release()
            with pytest.raises(LockLost):
                holder.gets_in()
            assert not holder.lock.held
            with pytest.raises(LockLost):
                holder.lock.release()
            if free:
                assert not arena.keys(fight.name)
            else:
                other.lock.release()


def test_semaphore_permits_end_one_by_one(arena: Arena) -> None:
    """Each permit has a lease of its own: one that is extended outlives one that is not."""
    with arena.fight(SEMAPHORE, permits=2, lease=0.4) as fight:
        kept, forgotten = fight.holder(lease=UNHURRIED), fight.holder()
        newcomer = fight.party()
        deadline = time.monotonic() + 60
        while not newcomer.gets_in():
            kept.lock.extend()
            assert time.monotonic() < deadline
        assert kept.lock.held
        kept.lock.release()
        with pytest.raises(LockLost):
            forgotten.lock.release()


def test_mended_nests_and_counts(arena: Arena) -> None:
    with arena.fight(MENDED, lease=UNHURRIED) as fight:
        before = renewers("_renew")
        party = fight.holder()
        for _ in range(4):
            assert party.gets_in()
        assert len(renewers("_renew") - before) == 1, "one renewal thread, whatever the depth"
        for _ in range(4):
            party.lock.release()
            fight.closed("it was left once too seldom, and it is free")
        party.lock.release()
        fight.opens_within(1, "it was left as often as it was entered")
        with pytest.raises(LockNotHeld):
            party.lock.release()
        wait_until(lambda: not renewers("_renew") - before)


def test_mended_renewal_ends_with_its_cap_and_with_its_thread(arena: Arena) -> None:
    for settings in ({"cap": 0.5}, {}):
        with arena.fight(MENDED, lease=0.3, **settings) as fight:
            party = fight.party()
            if settings:
                assert party.gets_in()
            else:
                dying = threading.Thread(target=party.gets_in)
                dying.start()
                dying.join()
            fight.opens_within(5, "its renewal goes on for ever")


def test_mended_learns_of_its_loss(arena: Arena) -> None:
    with arena.fight(MENDED, lease=0.3) as fight:
        party = fight.holder()
        fight.forgets()
        wait_until(lambda: not party.lock.held)
        with pytest.raises(LockLost):
            party.lock.release()


def test_pubsub_wakes_at_the_release(arena: Arena) -> None:
    """With a lease of 30 s and without one poll: the server says what it sends while it waits."""
    with arena.fight(PUBSUB, lease=UNHURRIED) as fight:
        holder, waiter = fight.holder(), fight.party(fight.site.named("pubsub"))
        waiting = waiter.waits()
        wait_until(lambda: any(int(each["sub"]) for each in arena.clients("pubsub")))
        wait_until(lambda: not waiter.gate.under_way)
        sent = waiter.gate.sent
        holder.lock.release()
        assert waiting.result(20)
        assert waiter.gate.sent <= sent + 4, "one attempt, and the end of the subscription"


@pytest.mark.parametrize(("timeout", "limit"), [(3.0, 60.0), (None, 3.0)])
def test_pubsub_a_server_that_falls_silent_before_the_subscription(
    arena: Arena, valkey_server: Callable[..., Valkey], timeout: float | None, limit: float
) -> None:
    """The wait time is kept; without one, the client's socket time-out."""
    server = valkey_server()
    with arena.fight(PUBSUB, lease=UNHURRIED) as fight:
        site = replace(fight.site, redis=str(server.socket))
        assert fight.party(site).gets_in()
        waiter = fight.party(site)
        waiter.lock.redis.connection_pool.connection_kwargs["socket_timeout"] = limit
        waiting = waiter.begins(waiter.lock.acquire, timeout, stop_before=1)
        assert waiter.stands_at_the_gate(waiting), "it was refused, and is about to subscribe"
        server.pause()
        waiter.gate.open()
        try:
            if timeout is None:
                with pytest.raises(LockUnavailable, match="not confirmed"):
                    waiting.result(60)
            else:
                assert waiting.result(60) is False
        finally:
            server.resume()
            waiter.gate.kill()


def test_queue_serves_in_order_and_wakes_just_one(arena: Arena) -> None:
    with arena.fight(QUEUE, lease=UNHURRIED) as fight:
        holder, served = fight.holder(), []
        parties = [fight.party(fight.site.named(f"queue-{n}")) for n in range(3)]
        for number, party in enumerate(parties):
            _queues(fight, party, number, served)
        sent = [party.gate.sent for party in parties]
        holder.lock.release()
        wait_until(lambda: served == [0])
        assert [party.gate.sent for party in parties[1:]] == sent[1:], "the others sleep on"
        parties[0].begins(parties[0].lock.release).result()
        wait_until(lambda: served == [0, 1])
        parties[1].begins(parties[1].lock.release).result()
        wait_until(lambda: served == [0, 1, 2])


@pytest.mark.parametrize("asks_again", [False, True])
def test_queue_leaves_no_key_of_a_waiter_that_did_not_come_to_be_woken(
    arena: Arena, asks_again: bool
) -> None:
    """It was handed the lock just as it gave up, or as it asked once more at the end of its time."""
    with arena.fight(QUEUE, lease=30.0) as fight:
        holder, waiter = fight.holder(), fight.party()
        assert not waiter.lock._ask("enter", b"late")
        holder.lock.release()
        if asks_again:
            assert waiter.lock._ask("enter", b"late")
        assert waiter.lock._ask("leave", b"late")
        assert not list(arena.admins[0].scan_iter(f"*{fight.name}*", count=1000))


def _queues(fight: Fight, party: Any, number: int, served: list[int]) -> None:
    def enter() -> None:
        party.lock.acquire()
        served.append(number)

    party.begins(enter)
    wait_until(lambda: any("b" in each["flags"] for each in fight.arena.clients(f"queue-{number}")))


def test_queue_drops_dead_waiters_at_once_when_they_are_long_dead(arena: Arena) -> None:
    with arena.fight(QUEUE, lease=1.5) as fight:
        holder = fight.holder(lease=UNHURRIED)
        dead = fight.process()
        dead.begins("acquire")
        dead.waits(arena.admins[0])
        dead.dies()
        time.sleep(1.2 * fight.lease)  # it no longer counts as alive
        holder.lock.release()
        fight.opens_within(1.0, "a waiter that is long dead was handed the lock")  # for a lease of 1.5 s


def test_fair_lock_passes_the_gate_with_each_command(arena: Arena) -> None:
    """Neither the gates nor the cases turn a quiet question off: they try the lock that people use."""
    with arena.fight(QuietFairLock, lease=UNHURRIED) as fight:
        party = fight.party()
        for turn in range(1, 4):
            assert party.takes()
            party.lock.release()
            assert party.lock._home.client.quiet
            assert party.gate.sent >= 2 * turn


def test_fenced_numbers_survive_expiry_and_release(arena: Arena) -> None:
    with arena.fight(LOCKS["fenced"], lease=UNHURRIED) as fight:
        first = fight.holder()
        fight.forgets()
        second = fight.holder()
        second.lock.release()
        third = fight.holder()
        numbers = [each.lock.fencing_token for each in (first, second, third)]
        assert numbers == sorted(set(numbers))
        assert arena.admins[0].ttl(f"{{{fight.name}}}:fence") == -1, "the counter never expires"


def test_release_error_does_not_hide_what_went_wrong_inside(arena: Arena) -> None:
    with arena.fight(LOCKS["token"], lease=UNHURRIED) as fight:
        with pytest.raises(ZeroDivisionError) as told, fight.party().lock:
            _loses_it_and_fails(fight)
        assert "lease ended" in told.value.__notes__[0]


def _loses_it_and_fails(fight: Fight) -> None:
    fight.forgets()
    _ = 1 / 0


def test_django_cache_is_asked_for_its_own_lock(arena: Arena) -> None:
    with arena.fight(LOCKS["django-redis"], lease=UNHURRIED) as fight:
        redis = fight.party().lock._lock.redis
        cache = SimpleNamespace(lock=lambda key, **options: redis.lock(f"cache:{key}", **options))
        lock = build(LOCKS["django-redis"], fight.name, cache=cache, redis=None)
        with lock:
            assert arena.admins[0].exists(f"cache:{fight.name}")
        with pytest.raises(TypeError, match="give cache="):
            build(LOCKS["django-redis"], fight.name)


def test_redis_py_without_a_lease_is_for_ever(arena: Arena) -> None:
    with arena.fight(LOCKS["redis-py"], lease=None) as fight:
        fight.holder()
        assert fight.remains() == -1


def test_unavailable_says_what_to_do(arena: Arena) -> None:
    with arena.fight(LOCKS["token"]) as fight:
        party = fight.party(type(fight.site)(str(arena.replica.socket)))
        with pytest.raises(LockUnavailable, match="connect to the primary"):
            party.gets_in()
