"""Must-fail controls: the checks of fair-lock's tests, put to a fair-lock that lacks what they check."""

import signal

import pytest

from locks.fair_lock import FairLock, client, questions
from locks.server import LuaScript

from .actor import eventually


@pytest.fixture
def without(monkeypatch):
    """`without("ACQUIRE", old, new)`: the script with `new` where `old` stood."""

    def replace(script: str, old: str, new: str) -> None:
        usual = getattr(questions, script)
        assert old in usual.text
        broken = LuaScript(*usual.filenames, package=usual.package)
        broken.text = usual.text.replace(old, new)
        monkeypatch.setattr(questions, script, broken)
        client.start_again()  # nothing that was packed before is used

    yield replace
    client.start_again()


def queue_up(actors, redis):
    for place, each in enumerate(actors, start=1):
        each.tell("acquire")
        eventually(lambda place=place: redis.llen("{x}:queue") == place, "queued")


def test_without_a_look_at_who_is_reached_a_killed_waiter_gets_the_lock(without, redis_client, actor):
    without("RELEASE", "number)) > 0", "number)) >= 0")
    holder = FairLock("x", redis=redis_client)
    holder.acquire()
    dead, alive = actor(lease=60), actor(lease=60)
    queue_up([dead, alive], redis_client)
    channel = redis_client.lindex("{x}:queue", 0).split(b":")[0]
    dead.signal(signal.SIGKILL)
    eventually(lambda: redis_client.pubsub_numsub(channel)[0][1] == 0, "its socket is closed")
    holder.release()
    assert redis_client.get("x").startswith(channel)
    assert alive.silent()


def test_without_recovery_each_silent_waiter_costs_a_lease(without, redis_client, actor):
    without("ACQUIRE", "return heir or hand_over()", "return hand_over()")
    without(
        "ACQUIRE", "for _, token in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do", "for _ in ipairs({}) do"
    )
    lease = 0.4
    holder = FairLock("x", redis=redis_client)
    holder.acquire()
    silent, alive = [actor(lease=lease) for _ in range(6)], actor(lease=lease)
    queue_up([*silent, alive], redis_client)
    for each in silent:
        each.signal(signal.SIGSTOP)
    before = holder.fencing_token
    holder.release()
    assert alive.answer()[2] - before == 7


def test_without_the_queue_first_a_newcomer_barges_in(without, redis_client, actor):
    without("ACQUIRE", "redis.call('EXISTS', KEYS[3]) == 0", "true")
    holder = FairLock("x", redis=redis_client, lease=30)
    holder.acquire()
    queue_up([actor(lease=20)], redis_client)
    redis_client.delete("x")
    assert FairLock("x", redis=redis_client).acquire(timeout=0) is True


def test_without_the_owner_a_late_release_takes_the_next_ones_lock(without, redis_client):
    without("RELEASE", "if mine or holds(me, redis.call('GET', KEYS[1])) then", "if true then")
    lock = FairLock("x", redis=redis_client)
    lock.acquire()
    redis_client.set("x", "another's", px=60_000)
    lock.release()
    assert redis_client.get("x") is None


def test_without_the_seed_numbers_restart_after_a_loss(without, redis_client):
    without("ACQUIRE", "if number == 1 then", "if false then")
    lock = FairLock("x", redis=redis_client)
    with lock:
        pass
    with lock:
        before = lock.fencing_token
    redis_client.flushall()
    with lock:
        assert lock.fencing_token < before
