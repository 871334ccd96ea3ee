"""The published locks break as their pages say: what the common cases cannot show."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from redis.exceptions import NoPermissionError, ResponseError

from locks import LOCKS, LockLost, LockNotHeld, LockUnavailable
from locks.renewal_service import RenewalServiceLock
from tests.contract.arena import Arena, renewers
from tests.contract.promises import wait_until
from tests.contract.site import UNHURRIED
from tests.contract.turns import quick_turns

COUNTER, TIMESTAMP, REENTRANT = LOCKS["counter-one-name"], LOCKS["timestamp"], LOCKS["reentrant"]
WATCHDOG, WATCHDOG_LUA, SETNX_TTL = LOCKS["watchdog"], LOCKS["watchdog-lua"], LOCKS["setnx-ttl"]


def test_counter_init_makes_garbage_of_the_count(arena: Arena) -> None:
    with arena.fight(COUNTER, lease=30.0) as fight:
        party = fight.party()
        party.lock.init()
        assert arena.admins[0].strlen(fight.name) == 30_001, "the lease became an offset"
        for _ in range(2):
            with pytest.raises(ResponseError, match="not an integer"):
                party.gets_in()
        fight.party().leaves()  # someone deletes it
        assert party.gets_in()
        assert fight.remains() == -1, "after a release it counts without a lease"
        fight.party().lock.init()
        with pytest.raises(ResponseError, match="not an integer"):
            fight.party().gets_in()  # during a hold: the count is gone


def test_counter_never_gives_a_refused_increment_back(arena: Arena) -> None:
    with arena.fight(COUNTER, permits=2) as fight:
        first, second = fight.holder(), fight.holder()
        assert not fight.party().gets_in()
        assert not fight.party().gets_in()
        assert arena.admins[0].get(fight.name) == b"4"
        first.lock.release()
        assert fight.party().gets_in()
        assert fight.party().gets_in(), "one left, and two came: the release forgot the other holder"
        assert second.lock.held


def test_counters_first_release_deletes_a_key_that_was_never_there(arena: Arena) -> None:
    admin = arena.admins[0]
    with arena.fight(LOCKS["counter"]) as fight:
        first, second = fight.party(), fight.party()
        assert first.gets_in()
        first.lock.release()
        assert admin.get(fight.name) == b"1", "it was released, and it counts on"
        assert not second.gets_in(), "a process that has released nothing is refused for ever"
        assert first.gets_in()
        assert admin.get(f'"{fight.name}"') == b"1", "its own process now has a lock of another name"
        admin.delete(f'"{fight.name}"')


def test_two_processes_are_inside_under_the_two_names_of_the_counter(arena: Arena) -> None:
    with arena.fight(LOCKS["counter"]) as fight:
        released, fresh = fight.party(), fight.party()
        released.lock.release()  # its `finally`, or an init: either changes the serializer
        assert released.gets_in()
        assert fresh.gets_in()
        arena.admins[0].delete(f'"{fight.name}"')


def test_timestamp_trusts_the_clients_clock(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    with arena.fight(TIMESTAMP, lease=5.0) as fight:
        fight.holder()
        fast = time.time() + 6
        monkeypatch.setattr("locks.timestamp.time.time", lambda: fast)
        assert fight.party().gets_in(), "its clock is 6 s ahead: it deleted a living lock"


def test_timestamp_swallows_a_failed_expire(arena: Arena) -> None:
    """EXPIRE alone is forbidden to this user, so SETNX is done and the lock says no."""
    admin = arena.admins[0]
    with arena.fight(TIMESTAMP, lease=2.0) as fight:
        party = fight.party()
        assert admin.acl_setuser(
            "no-expire", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-expire"]
        )
        # pragma: allowlist nextline secret
        party.lock.redis.connection_pool.connection_kwargs |= {"username": "no-expire", "password": "any"}
        assert not party.gets_in()
        assert fight.remains() == -1, "it said no, and holds it without an end on the server"
        assert not party.gets_in(), "it waits for itself"
        admin.acl_deluser("no-expire")


def test_setnx_ttl_lets_a_third_one_in(arena: Arena) -> None:
    with arena.fight(SETNX_TTL, lease=UNHURRIED) as fight:
        first = fight.holder()
        fight.forgets()
        second = fight.holder()
        first.lock.release()
        third = fight.holder()
        assert second.lock.held
        assert third.lock.held


def test_watchdog_lua_leaves_an_orphan(arena: Arena) -> None:
    """Its thread is stopped by a successful release only; then it serves every successor."""
    with arena.fight(WATCHDOG_LUA, lease=60.0) as fight:
        before = renewers("_watch")
        punctual = fight.holder()
        punctual.lock.release()
        wait_until(lambda: not renewers("_watch") - before)
        before = renewers("_watch")
        late = fight.holder()
        fight.forgets()
        late.lock.release()
        arena.admins[0].set(fight.name, "successor", px=30_000)
        wait_until(lambda: fight.remains() > 50)
        late.gate.kill()
        wait_until(lambda: not renewers("_watch") - before)


def test_setnx_ttl_an_interrupted_holder_keeps_the_lock_of_a_section_that_is_over(arena: Arena) -> None:
    with arena.fight(SETNX_TTL, lease=UNHURRIED) as fight:
        holder = fight.party()
        with pytest.raises(KeyboardInterrupt), holder.lock:
            raise KeyboardInterrupt
        assert not holder.lock.held
        assert fight.remains() > 0, "nobody works, and everyone waits for the rest of the lease"
        fight.forgets()
        with pytest.raises(ZeroDivisionError), fight.party().lock:
            raise ZeroDivisionError
        assert not fight.remains(), "any other error lets it delete"


def test_an_error_in_the_watchdogs_release_lets_it_renew_for_ever(arena: Arena) -> None:
    """GET is forbidden to this user, PTTL and PEXPIRE are not: its release fails, its thread does not."""
    admin = arena.admins[0]
    assert admin.acl_setuser("no-get", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-get"])
    with arena.fight(WATCHDOG, lease=60.0, below=50.0) as fight:
        before, party = renewers("_watch"), fight.party()
        # pragma: allowlist nextline secret
        party.lock.redis.connection_pool.connection_kwargs |= {"username": "no-get", "password": "any"}
        assert party.takes()
        with pytest.raises(NoPermissionError):
            party.lock.release()
        assert not party.lock.held
        (renewing,) = renewers("_watch") - before
        assert not renewing.daemon, "it keeps its process alive"
        for _ in range(2):
            admin.pexpire(fight.name, 30_000)
            wait_until(lambda: fight.remains() > 50)  # no section runs, and it is renewed again and again
        party.gate.kill()
        wait_until(lambda: not renewers("_watch") - before)
    admin.acl_deluser("no-get")


def test_the_mended_watchdog_stops_before_its_release_can_fail(arena: Arena) -> None:
    with arena.fight(LOCKS["watchdog-mended"], lease=UNHURRIED) as fight:
        before, party = renewers("_renew"), fight.holder()
        (renewing,) = renewers("_renew") - before
        assert renewing.daemon
        fight.forgets()
        with pytest.raises(LockLost):
            party.lock.release()
        wait_until(lambda: not renewers("_renew") - before)


def test_watchdog_extends_whatever_lock_is_there(arena: Arena) -> None:
    with arena.fight(WATCHDOG, lease=60.0, below=50.0) as fight:
        fight.holder()
        arena.admins[0].set(fight.name, "successor", px=30_000)
        wait_until(lambda: fight.remains() > 55)


def test_reentrant_starts_a_thread_for_every_entry_and_stops_none(arena: Arena) -> None:
    with quick_turns(), arena.fight(REENTRANT, lease=UNHURRIED) as fight:
        before = renewers("_renew")
        party = fight.holder()
        for _ in range(4):
            assert party.gets_in()
        assert len(renewers("_renew") - before) == 5
        for _ in range(4):
            party.lock.release()
        assert len(renewers("_renew") - before) == 5, "it is held once, by five threads"
        arena.admins[0].pexpire(fight.name, 600_000)
        wait_until(lambda: 0 < fight.remains() <= fight.lease)  # they set it to a whole lease
        party.lock.release()
        wait_until(lambda: not renewers("_renew") - before)


def test_reentrant_each_section_leaves_a_thread_behind(arena: Arena) -> None:
    with arena.fight(REENTRANT, lease=20.0) as fight:
        party, before = fight.party(), renewers("_renew")
        for _ in range(5):
            assert party.gets_in()
            party.lock.release()
        assert len(renewers("_renew") - before) == 5


def test_python_redis_lock_a_clients_time_out_ends_the_wait(arena: Arena) -> None:
    """Long before the wait time, and before the lease."""
    with arena.fight(LOCKS["python-redis-lock"], lease=60.0) as fight:
        fight.holder()
        waiter = fight.party()
        waiter.lock._lock._client.connection_pool.connection_kwargs["socket_timeout"] = 0.3
        for timeout in (30, None):
            with pytest.raises(LockUnavailable, match="Timeout reading"):
                waiter.lock.acquire(timeout=timeout)
        assert not waiter.lock.held


@pytest.mark.filterwarnings(r"ignore:(?s)Exception in thread .*redis_lock\.NotAcquired")
def test_python_redis_lock_is_taken_again_after_a_loss_that_its_renewal_died_of(arena: Arena) -> None:
    """The library itself starts no second one: it raised that the first was there, and left the lock behind."""
    before = renewers("_lock_renewer")
    with arena.fight(LOCKS["python-redis-lock"], lease=1.0, renew=True) as fight:
        holder = fight.holder()
        fight.forgets()
        wait_until(lambda: not renewers("_lock_renewer") - before)
        with pytest.raises(LockLost):
            holder.lock.release()
        assert holder.gets_in()
        holder.lock.release()
        assert fight.party().gets_in()


def test_python_redis_lock_without_a_lease_has_none_to_extend(arena: Arena) -> None:
    with arena.fight(LOCKS["python-redis-lock"], lease=None) as fight:
        endless = fight.party().lock
        with pytest.raises(LockNotHeld):
            endless.extend()
        assert endless.acquire(timeout=0)
        with pytest.raises(NotImplementedError, match="without a lease"):
            endless.extend()
        endless.release()


@pytest.mark.parametrize("unit", ["milliseconds", "seconds"])
def test_reentrant_ignores_the_unit(arena: Arena, unit: str) -> None:
    with arena.fight(REENTRANT, lease=500.0, unit=unit) as fight:
        fight.holder()
        assert fight.remains() > 400


def test_renewal_service_outlives_the_holder(arena: Arena) -> None:
    """Ten leases after its death the lock is still there, by an instance that another client carries."""
    with arena.fight(LOCKS["renewal-service"], lease=UNHURRIED) as fight:
        holder, _bystander = fight.process(), fight.party()
        assert holder.asks("acquire", 1)
        holder.dies()
        passed, started = 0.0, time.monotonic()
        while passed + time.monotonic() - started < 10 * fight.lease:
            passed += fight.passes_time(left=15.0)
            wait_until(lambda: fight.remains() > 15.0)
        arena.admins[0].delete("renewal-service:locks")


def test_a_renewal_service_that_is_ended_sends_nothing_more(arena: Arena) -> None:
    """It went on for as long as its client, and a search later in the same process met its commands."""
    with arena.fight(LOCKS["renewal-service"]) as fight:
        holder, first = fight.holder(), renewers("_serve")
        RenewalServiceLock.end_services()
        for service in first:
            service.join()
        assert not renewers("_serve")
        holder.leaves()
        fight.holder()
        assert renewers("_serve")


def test_renewal_service_forgets_a_successor(arena: Arena) -> None:
    """A is stopped between the two commands of its release; B acquires; A goes on: no thread renews B's lock."""
    with arena.fight(LOCKS["renewal-service"], lease=UNHURRIED) as fight:
        slow, successor = fight.holder(), fight.party()
        slow.lock.release()  # the server knows its script from now on
        assert slow.gets_in()
        releasing = slow.begins(slow.lock.release, stop_before=1)
        assert slow.stands_at_the_gate(releasing)
        assert successor.gets_in()
        slow.gate.open()
        releasing.result()
        fight.passes_time(left=0.4)
        fight.opens_within(1.4, "somebody renews the successor's lock")
        assert successor.lock.held


def test_leaky_lock_stalls_with_the_pool_as_published(arena: Arena) -> None:
    """Eight commands are four sections; the ninth waits without a limit."""
    with arena.fight(LOCKS["token-leaky"], pool_wait=None) as fight:
        party = fight.party()
        for _ in range(4):
            assert party.gets_in()
            party.lock.release()
        stalled = threading.Thread(target=party.gets_in, daemon=True)
        stalled.start()
        stalled.join(0.3)
        assert stalled.is_alive()
        pool: Any = party.lock._pools[party.lock.redis]
        pool.release(pool._connections[0])  # let the test end
        stalled.join(60)
        assert not stalled.is_alive()


def test_try_lock_checked_hides_that_it_was_busy(arena: Arena) -> None:
    with arena.fight(LOCKS["try-lock-checked"], wait=0.05) as fight:
        fight.holder()
        with pytest.raises(Exception, match="not locked by this object") as told, fight.party().lock:
            pass
        assert "busy" in str(told.value.__context__), "the word is there only for who digs for it"
