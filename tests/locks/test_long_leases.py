"""A lease of months is waited for as any other: what waits on a socket counts milliseconds in 31 bits."""

import threading

import pytest

from locks.fair_lock import FairLock
from locks.timing import LONGEST
from locks.token_pubsub import TokenPubSubLock

from .actor import client, eventually


@pytest.mark.parametrize(
    ("kind", "waits"),
    [
        (FairLock, lambda redis: redis.exists("{x}:queue")),
        (TokenPubSubLock, lambda redis: redis.pubsub_numsub("{x}:released")[0][1]),
    ],
    ids=["fair-lock", "token-pubsub"],
)
def test_the_longest_lease_can_be_waited_for(redis_client, redis_url, kind, waits):
    came = []

    def wait(lock):
        try:
            came.append(lock.acquire())
        except Exception as error:  # noqa: BLE001  the test looks at it
            came.append(error)

    with client(redis_url) as redis:
        first, second = (kind("x", redis=redis, lease=LONGEST) for _ in range(2))
        first.acquire()
        thread = threading.Thread(target=wait, args=(second,), daemon=True)
        thread.start()
        eventually(lambda: came or waits(redis_client), "the second waits")
        first.release()
        thread.join(60)
    assert came == [True]
