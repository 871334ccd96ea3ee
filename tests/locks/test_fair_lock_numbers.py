"""A fencing number is read rightly whatever its length, from a reply and from a message."""

import pytest

from locks.fair_lock import FairLock

from .actor import eventually


@pytest.fixture
def lock(redis_client):
    return FairLock("x", redis=redis_client, lease=60)


@pytest.mark.parametrize("last", [9, 41, 10**15 - 1, 10**15])
def test_a_number_of_another_length(lock, redis_client, last):
    redis_client.hset("{x}:fence", "number", last)
    with lock:
        assert lock.fencing_token == last + 1


@pytest.mark.parametrize("last", [41, 10**15 - 3, 10**15 - 2])
def test_a_number_of_another_length_comes_as_a_message(lock, redis_client, actor, last):
    other = actor()
    redis_client.hset("{x}:fence", "number", last)
    lock.acquire()
    other.tell("acquire")
    eventually(lambda: redis_client.llen("{x}:queue") == 1, "queued")
    lock.release()
    assert other.answer()[2] == last + 2
    lock._home.questions.busy = True
    other.tell("release").answer()
    with lock:  # it asks quietly, and hears from the script itself
        assert lock.fencing_token == last + 3
