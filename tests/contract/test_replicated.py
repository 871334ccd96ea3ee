"""WAIT and WAITAOF: locks that check the answer, and what waiting costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from loadtest.servers import Valkey
from locks import LOCKS, LockUnavailable, LockUnsupported
from tests.contract.arena import Arena
from tests.contract.promises import wait_until
from tests.contract.site import UNHURRIED, Site

AS_PUBLISHED, REPLICATED, DURABLE = LOCKS["replicated-as-published"], LOCKS["replicated"], LOCKS["durable"]


@pytest.fixture
def alone(valkey_server: Callable[..., Valkey]) -> Site:
    """A primary without a replica, without an append-only file."""
    return Site(str(valkey_server().socket))


def test_as_published_goes_on_unconfirmed(arena: Arena, alone: Site) -> None:
    with arena.fight(AS_PUBLISHED, lease=UNHURRIED, confirm=0.05) as fight:
        assert fight.party(alone).gets_in(), "no replica has it, and it says yes"


@pytest.mark.parametrize("lock", [AS_PUBLISHED, REPLICATED], ids=lambda lock: lock.slug)
def test_the_connection_that_waits_is_the_one_that_wrote(arena: Arena, lock: Any) -> None:
    """WAIT speaks of what its own connection wrote; and which connection a pool hands out is luck."""

    class InTurn(list[Any]):
        def pop(self, *_: Any) -> Any:
            return super().pop(0)

    with arena.fight(lock, lease=UNHURRIED) as fight, arena.main.client().monitor() as heard:
        party = fight.party(replace(arena.site, redis=arena.main.port))
        pool = party.lock.redis.connection_pool
        two = [pool.get_connection() for _ in range(2)]
        for each in two:
            pool.release(each)
        pool._available_connections = InTurn(pool._available_connections)
        assert party.gets_in()
        wrote, waited = (
            next(told["client_port"] for told in heard.listen() if told["command"].startswith(word))
            for word in (f"SET {fight.name}", "WAIT")
        )
        assert wrote == waited


def test_as_published_raises_where_the_client_waits_no_longer_than_the_server(
    arena: Arena, alone: Site
) -> None:
    with arena.fight(AS_PUBLISHED, lease=UNHURRIED, confirm=5.0) as fight:
        party = fight.party(alone)
        party.lock.redis.connection_pool.connection_kwargs["socket_timeout"] = 0.1
        with pytest.raises(RedisTimeoutError):
            party.gets_in()
        assert party.lock.redis.exists(fight.name), "nobody has it, and it stays for its lease"
        assert not party.lock.held


def test_as_published_waits_until_its_lease_is_over(arena: Arena, alone: Site) -> None:
    """WAIT for 1.2 s, lease of 1 s: a second client is inside before the first one has its answer."""
    with arena.fight(AS_PUBLISHED, lease=1.0, confirm=1.2) as fight:
        first, second = fight.party(alone), fight.party(alone, confirm=0.01)
        acquiring = first.begins(first.gets_in)
        wait_until(lambda: second.lock.redis.exists(fight.name) or acquiring.done())
        started = time.monotonic()
        while not second.gets_in():
            assert time.monotonic() - started < 60
        assert acquiring.result()
        assert first.lock.held
        assert second.lock.held


def test_replicated_is_deleted_when_unconfirmed(arena: Arena, alone: Site) -> None:
    with arena.fight(REPLICATED, lease=UNHURRIED, confirm=0.05) as fight:
        party = fight.party(alone)
        with pytest.raises(LockUnavailable, match="fewer than 1 replicas confirmed"):
            party.gets_in()
        assert not party.lock.redis.exists(fight.name)
        assert fight.party(alone, replicas=0).gets_in()


@pytest.mark.parametrize("lock", [REPLICATED, DURABLE], ids=lambda lock: lock.slug)
@pytest.mark.parametrize("error", [KeyboardInterrupt, RedisTimeoutError])
def test_what_was_written_is_deleted_when_the_wait_ends_with_an_error(
    arena: Arena, lock: Any, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also an interrupt, and by a client that has one connection alone."""

    def fails(connection: Redis) -> bool:
        raise error

    with arena.fight(lock, lease=UNHURRIED) as fight:
        party = fight.party()
        party.lock.redis.connection_pool.max_connections = 1
        with monkeypatch.context() as patch:
            patch.setattr(party.lock, "_confirmed", fails)
            with pytest.raises(LockUnavailable if error is RedisTimeoutError else error):
                party.lock.acquire(timeout=0)
        assert not party.lock.held
        assert not arena.keys(fight.name)
        assert party.gets_in()


def test_replicated_an_unconfirmed_extension_is_none(arena: Arena) -> None:
    with arena.fight(REPLICATED, lease=UNHURRIED) as fight:
        holder = fight.holder()
        until = holder.lock._valid_until
        enough, holder.lock.confirm = holder.lock.confirm, 200
        holder.lock.replicas = 2  # there is one
        with pytest.raises(LockUnavailable, match="the lease is unchanged"):
            holder.lock.extend()
        assert holder.lock._valid_until == until
        holder.lock.replicas, holder.lock.confirm = 1, enough
        holder.lock.extend()
        assert holder.lock._valid_until > until


def test_replicated_takes_the_wait_off_the_validity(arena: Arena, alone: Site) -> None:
    """Two replicas are told to wait for with one there: the wait outlasts the lease, so nothing was acquired."""
    with arena.fight(REPLICATED, lease=0.2, confirm=0.4) as fight:
        with pytest.raises(LockUnavailable):
            fight.party(alone).gets_in()
        assert fight.party(lease=UNHURRIED, confirm=4.0).gets_in(), "with its replica there, at once"


@pytest.mark.parametrize("lock", [REPLICATED, DURABLE], ids=lambda lock: lock.slug)
def test_a_confirmation_after_the_lease_is_reported_as_such(arena: Arena, lock: Any) -> None:
    """Not that it was not confirmed: who hears that looks for a replica that is down."""
    with arena.fight(lock, lease=0.2) as fight:
        party = fight.party()
        asking = party.begins(party.lock.acquire, stop_before=1)
        assert party.stands_at_the_gate(asking)  # before WAIT
        wait_until(lambda: not arena.keys(fight.name))
        party.gate.open()
        with pytest.raises(LockUnavailable, match="the lease was over"):
            asking.result()


@pytest.mark.parametrize("lock", [REPLICATED, DURABLE], ids=lambda lock: lock.slug)
@pytest.mark.parametrize("step", ["acquire", "extend"])
def test_a_client_that_connects_again_does_not_confirm_what_another_session_wrote(
    arena: Arena, lock: Any, step: str
) -> None:
    """Such a session wrote nothing, and all that it wrote is everywhere. redis-py's usual client asks in it."""
    with arena.fight(lock, lease=UNHURRIED, confirm=20.0) as fight:
        name = f"again-{fight.name}"
        party = fight.party(fight.site.named(name))
        party.lock.redis.set_retry(Retry(NoBackoff(), 3))
        if step == "extend":
            assert party.gets_in()
        asking = party.begins(getattr(party.lock, step), stop_before=1)
        assert party.stands_at_the_gate(asking)  # before WAIT
        for each in arena.clients(name):
            arena.admins[0].client_kill_filter(each["id"])
        party.gate.open()
        with pytest.raises(LockUnavailable):
            asking.result()
        assert party.lock.redis.get_retry().get_retries() == 3


def test_durable_needs_an_append_only_file(arena: Arena, alone: Site) -> None:
    with arena.fight(DURABLE, lease=UNHURRIED) as fight:
        party = fight.party(alone)
        with pytest.raises(LockUnsupported, match="appendonly"):
            party.gets_in()
        assert not party.lock.redis.exists(fight.name), "it was taken back"


@pytest.mark.parametrize("persistence", ["always", "everysec"])
def test_durable_survives_a_killed_server(
    arena: Arena, valkey_server: Callable[..., Valkey], persistence: str
) -> None:
    server = valkey_server(persistence=persistence)
    site = Site(str(server.socket))
    with arena.fight(DURABLE, lease=300.0, confirm=55.0) as fight:
        party, second, third = (fight.party(site) for _ in range(3))
        for each in (party, second, third):  # however slow its disk is
            each.lock.redis.connection_pool.connection_kwargs["socket_timeout"] = 60.0
        assert party.gets_in()
        server.kill()
        server.start()
        assert not second.gets_in()
        party.lock.release()
        assert third.gets_in()
