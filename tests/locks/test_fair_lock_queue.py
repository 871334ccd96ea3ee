"""fair-lock's queue between processes: the order, and what a waiter that has left costs the others."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile

import pytest
from redis import Redis

from locks.errors import LockError, LockUnavailable
from locks.fair_lock import FairLock

from .actor import eventually

SLACK = 60.0  # seconds that other work on the machine may take: whatever is not to be waited for takes longer


@pytest.fixture
def queued(redis_client):
    """`queued(n)`: wait until n waiters are in the queue."""

    def wait(count, name="x"):
        eventually(lambda: redis_client.llen(f"{{{name}}}:queue") == count, f"{count} in the queue")

    return wait


@pytest.fixture
def holder(redis_client):
    """A lock that this process holds."""
    lock = FairLock("x", redis=redis_client, lease=30)
    lock.acquire()
    return lock


def ask(actors, queued):
    """Let each ask for the lock, one after the other."""
    for place, each in enumerate(actors, start=1):
        each.tell("acquire")
        queued(place)


def serve_all(release, waiters, redis_client, lease, number):
    """After `release()` of the one with `number` each gets the lock, in whatever order, and really has it when it says
    so. Only on a machine that stood still for a whole lease somebody may have lost it again."""
    waiting, numbers, released = list(waiters), [number], time.monotonic()
    release()
    while waiting:
        eventually(lambda: not all(waiter.silent() for waiter in waiting), "somebody has it")
        served = next(waiter for waiter in waiting if not waiter.silent())
        said, token, number, _ = served.answer()
        assert said is True
        # without the '+': it came back when the queue had gone on without it, and found the lock free
        held = redis_client.get("x") in (token, token + b"+")
        assert held or time.monotonic() - released > lease
        numbers.append(number)
        releases = time.monotonic()
        if served.tell("release").answer()[0] is None:
            released = releases
        else:
            assert time.monotonic() - released > lease
        waiting.remove(served)
    assert numbers == sorted(set(numbers))


def test_first_come_first_served(holder, actor, queued):
    waiters = [actor() for _ in range(5)]
    ask(waiters, queued)
    numbers = [holder.fencing_token]
    holder.release()
    for waiter in waiters:
        said, _, number, _ = waiter.answer()
        assert said is True
        numbers.append(number)
        waiter.tell("release").answer()
    assert numbers == list(range(numbers[0], numbers[0] + 6))


def test_the_hand_over_wakes_just_the_next(holder, actor, queued):
    first, second = actor(), actor()
    ask([first, second], queued)
    holder.release()
    first.answer()
    assert second.silent()
    first.tell("release")
    second.answer()


def test_no_barging(holder, actor, queued, redis_client):
    waiter = actor()
    ask([waiter], queued)
    holder.release()
    assert holder.acquire(timeout=0) is False
    token = waiter.answer()[1]
    assert redis_client.get("x") == token + b"+"


def test_no_barging_when_a_lease_ran_out(holder, actor, queued, redis_client):
    waiter = actor(lease=20)
    ask([waiter], queued)
    redis_client.delete("x")  # as the end of the lease does; the waiter has not noticed yet
    assert FairLock("x", redis=redis_client).acquire(timeout=0) is False
    assert waiter.answer()[0] is True


def test_a_release_wakes_a_waiter_at_once_and_not_at_its_next_look(holder, actor, queued):
    waiter = actor(lease=600)  # would look again after 200 s
    ask([waiter], queued)
    holder.release()
    assert waiter.answer()[0] is True


def test_killed_waiters_at_the_head_cost_nothing(holder, actor, queued, redis_client):
    dead, alive = [actor(lease=60) for _ in range(3)], actor(lease=60)
    ask([*dead, alive], queued)
    channels = [token.split(b":")[0] for token in redis_client.lrange("{x}:queue", 0, 2)]
    for each in dead:
        each.signal(signal.SIGKILL)
    eventually(lambda: not any(n for _, n in redis_client.pubsub_numsub(*channels)), "their sockets closed")
    holder.release()
    assert alive.answer()[0] is True  # far sooner than one lease of 60 s
    assert redis_client.llen("{x}:queue") == 0


def test_many_silent_waiters_delay_the_others_by_two_leases_at_most(holder, actor, queued):
    """Counted by the grants: each to a silent one costs a lease."""
    lease = 2.0
    silent, alive = [actor(lease=lease) for _ in range(8)], actor(lease=lease)
    ask([*silent, alive], queued)
    for each in silent:
        each.signal(signal.SIGSTOP)  # their connections stay open
    before = holder.fencing_token
    holder.release()
    said, _, number, _ = alive.answer()
    assert said is True
    assert number - before <= 3, "one for each of them would be 8, and its own"
    for each in silent:
        each.signal(signal.SIGCONT)
    # none of them believes the old message
    serve_all(lambda: alive.tell("release").answer(), silent, holder.redis, lease, number)


def test_a_waiter_killed_when_it_was_just_handed_the_lock_costs_a_lease(holder, actor, queued, redis_client):
    first, second = actor(lease=300), actor(lease=0.6)
    ask([first, second], queued)
    first.signal(signal.SIGSTOP)
    holder.release()
    assert redis_client.get("x").endswith(b":300000+")
    first.signal(signal.SIGKILL)
    redis_client.pexpire("x", 600)
    killed = time.monotonic()
    said, _, _, at = second.answer()
    assert said is True
    assert at - killed < 0.6 + SLACK


@pytest.mark.deep
def test_a_crashed_holder_costs_a_lease(redis_client, actor, queued):
    lease = 8.0
    holder, waiter = actor(lease=lease), actor(lease=600)  # the waiter would look again after 200 s
    holder.tell("acquire").answer()
    ask([waiter], queued)
    holder.signal(signal.SIGKILL)
    killed = time.monotonic()
    said, _, _, at = waiter.answer()
    assert said is True
    assert at - killed < lease + SLACK


def test_a_cancelled_waiter_leaves_no_trace(holder, actor, queued, redis_client):
    cancelled, second = actor(), actor()
    ask([cancelled, second], queued)
    cancelled.signal(signal.SIGINT)
    assert cancelled.answer()[0] == "KeyboardInterrupt"
    queued(1)
    holder.release()
    assert second.answer()[0] is True
    second.tell("release").answer()
    assert cancelled.tell("acquire", timeout=30).answer()[0] is True  # and it can be used again


def test_a_waiter_cancelled_when_it_was_just_handed_the_lock_gives_it_back(
    holder, actor, queued, redis_client
):
    first, second = actor(lease=60), actor(lease=60)
    ask([first, second], queued)
    first.signal(signal.SIGSTOP)
    holder.release()
    first.signal(signal.SIGINT)
    first.signal(signal.SIGCONT)
    if first.answer()[0] is True:  # the message was faster than the signal
        first.tell("release")
    assert second.answer()[0] is True  # far sooner than a lease of 60 s


def test_a_waiter_whose_time_is_over_leaves_the_queue(holder, actor, queued, redis_client):
    impatient, second = actor(), actor()
    impatient.tell("acquire", timeout=1)
    eventually(lambda: redis_client.llen("{x}:queue") == 1 or not impatient.silent(), "it queues, or did")
    second.tell("acquire")
    assert impatient.answer()[0] is False
    queued(1)
    holder.release()
    assert second.answer()[0] is True


def test_a_waiter_notices_by_itself_what_no_message_tells(holder, actor, queued, redis_client):
    waiter = actor(lease=0.6)
    ask([waiter], queued)
    redis_client.delete("x", "{x}:queue", "{x}:heard")
    assert waiter.answer()[0] is True


def test_a_waiter_that_has_left_is_forgotten(holder, actor, queued, redis_client):
    redis_client.hset("{x}:heard", mapping={f"gone:{number}": 1 for number in range(500)})
    waiter = actor(lease=0.3)  # it asks again each tenth of a second
    ask([waiter], queued)
    eventually(lambda: redis_client.hlen("{x}:heard") == 1, "only the waiter is noted")
    holder.release()
    assert waiter.answer()[0] is True


def test_waiters_queue_again_when_their_connections_are_cut(holder, actor, queued, redis_client):
    waiters = [actor(lease=60) for _ in range(3)]
    ask(waiters, queued)
    redis_client.client_kill_filter(_type="pubsub", skipme=False)
    # before they are back, a release would reach none of them: it frees the lock without a hand-over
    eventually(lambda: redis_client.hlen("{x}:heard") == len(waiters), "all have asked again")
    serve_all(holder.release, waiters, redis_client, 60, holder.fencing_token)


@pytest.mark.deep
def test_a_waiter_that_failed_is_handed_nothing_though_its_client_lives_on(
    holder, redis_client, redis_url, queued
):
    """Its token is still in the queue. The next user of its connection would listen for it."""
    with (
        Redis.from_url(redis_url) as client,
        Redis.from_url(redis_url) as other,
        ThreadPoolExecutor(2) as pool,
    ):
        failing = pool.submit(FairLock("x", redis=client, lease=30).acquire)
        queued(1)
        redis_client.config_set("maxmemory", 1)
        try:
            with pytest.raises(LockUnavailable):
                failing.result(60)
        finally:
            redis_client.config_set("maxmemory", 0)
        with FairLock("y", redis=client, lease=30):
            pass
        following = pool.submit(FairLock("x", redis=other, lease=30).acquire)
        queued(2)
        holder.release()
        assert following.result(60)


def test_a_hand_over_without_a_fence_restarts_it(holder, actor, queued, redis_client):
    first, second = actor(), actor()
    ask([first, second], queued)
    before = holder.fencing_token
    redis_client.delete("{x}:fence")
    holder.release()
    numbers = [before]
    for each in (first, second):
        said, _, number, _ = each.answer()
        assert said is True
        numbers.append(number)
        each.tell("release").answer()
    assert numbers == sorted(set(numbers)), "above what was given before the loss"


def test_a_foreign_list_in_place_of_the_queue_is_reported_at_the_acquire(redis_client):
    redis_client.rpush("{x}:queue", "a stranger's")
    with pytest.raises(
        LockError, match="x: one of its keys holds something else; give the lock another name"
    ):
        FairLock("x", redis=redis_client).acquire()


def test_a_foreign_list_in_place_of_the_queue_is_reported_at_the_release(holder, redis_client):
    redis_client.append("x", "+")  # there was a waiter
    redis_client.rpush("{x}:queue", "a stranger's")
    with pytest.raises(
        LockError, match="x: one of its keys holds something else; give the lock another name"
    ):
        holder.release()


def test_nobody_asks_twice_while_the_lock_is_handed_over(actor, holder, queued, redis_client):
    waiter = actor(lease=30)

    def cycle():
        waiter.tell("acquire")
        queued(1)
        holder.release()
        assert waiter.answer()[0] is True
        assert waiter.tell("release").answer()[0] is None

    cycle()  # the waiter connects, and the server learns the scripts
    holder.acquire()
    with redis_client.monitor() as heard:
        cycle()
        redis_client.echo("the end")
        until_then = takewhile(lambda each: "the end" not in each["command"], heard.listen())
        words = [each["command"].split()[0] for each in until_then if each["client_type"] != "lua"]
    of_the_lock = [word for word in words if word not in ("HELLO", "CLIENT", "LLEN")]
    assert of_the_lock == ["EVALSHA"] * 3, "the waiter asks, the holder hands over, the waiter gives back"
