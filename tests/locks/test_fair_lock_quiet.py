"""fair-lock's quiet question, which only a message answers: it is asked where the last release woke another."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile

import pytest

from locks.fair_lock import FairLock

from .actor import client, eventually
from .silencer import Silencer


@pytest.fixture
def server(valkey_server):
    return valkey_server(port=0)


@pytest.fixture
def asks_quietly(actor):
    """A lock that handed over at its last release, and is free again. `client`: of the lock, `direct` of the server."""

    def make(redis, direct, url):
        lock = FairLock("x", redis=redis, lease=60)
        lock.acquire()
        other = actor(url=url).tell("acquire")
        eventually(lambda: direct.llen("{x}:queue") == 1, "queued")
        lock.release()
        assert other.answer()[0] is True
        assert other.tell("release").answer()[0] is None
        assert lock._home.questions.busy
        return lock

    return make


@pytest.fixture
def lock(asks_quietly, server):
    redis = server.client()
    return asks_quietly(redis, redis, server.url)


def sent(direct, use):
    """What the lock's connections sent meanwhile."""
    with direct.monitor() as heard:
        use()
        direct.echo("the end")
        until_then = takewhile(lambda each: "the end" not in each["command"], heard.listen())
        words = [each["command"].split()[0] for each in until_then if each["client_type"] != "lua"]
    return [word for word in words if word in ("EVALSHA", "EVAL", "DELIFEQ")]


def test_a_number_comes_as_a_message(lock):
    with lock:
        before = lock.fencing_token
    lock._home.questions.busy = True
    commands = sent(lock.redis, lambda: (lock.acquire(), lock.release()))
    assert commands == ["EVALSHA", "EVALSHA"]  # and no second question
    assert not lock._home.questions.busy, "nobody was woken: the next question is a plain one"
    with lock:
        assert lock.fencing_token == before + 2


def test_a_script_flush_is_found_out(lock):
    lock.redis.script_flush()
    assert lock.acquire()
    assert lock.redis.get("x") == lock.token
    lock.release()


def test_a_lost_message_is_asked_for(asks_quietly, server):
    silencer = Silencer(server.port)
    try:
        lock = asks_quietly(client(silencer.url), server.client(), server.url)
        silencer.swallow()
        assert lock.acquire()
        assert silencer.swallowed == 1
        assert server.client().get("x") == lock.token
        lock.release()
    finally:
        silencer.close()


def test_a_user_who_may_not_be_quiet(asks_quietly, server):
    redis = server.client()
    redis.execute_command("ACL", "SETUSER", "loud", "on", "nopass", "~*", "&*", "+@all", "-client|reply")
    lock = asks_quietly(client(server.url, username="loud", password="x"), redis, server.url)
    with lock:
        assert redis.get("x") == lock.token
    lock._home.questions.busy = True
    commands = sent(redis, lambda: (lock.acquire(), lock.release()))
    assert commands == ["EVALSHA", "DELIFEQ"], "it is not tried again"


def test_a_user_who_may_not_be_quiet_waits_all_the_same(asks_quietly, server):
    """The refusal and the script's answer, which is none, come at once."""
    redis = server.client()
    redis.execute_command("ACL", "SETUSER", "loud", "on", "nopass", "~*", "&*", "+@all", "-client|reply")
    lock = asks_quietly(client(server.url, username="loud", password="x"), redis, server.url)
    holder = FairLock("x", redis=redis)
    holder.acquire()
    with ThreadPoolExecutor(1) as waiter:
        waiting = waiter.submit(lock.acquire)
        eventually(lambda: waiting.done() or redis.llen("{x}:queue"), "queued")
        eventually(lambda: waiting.done() or not lock._home.client.quiet, "it was refused")
        holder.release()
        assert waiting.result(60) is True
        waiter.submit(lock.release).result()


def test_a_quiet_waiter_that_is_killed_costs_nothing(asks_quietly, server, actor):
    """It is in the queue like any other."""
    redis = server.client()
    lock, quiet, last = (actor(url=server.url, lease=600) for _ in range(3))
    for each in (lock, quiet):
        for _ in range(3):
            each.tell("acquire").answer()
            each.tell("release").answer()
    quiet.tell("acquire").answer()
    lock.tell("acquire")
    eventually(lambda: redis.llen("{x}:queue") == 1, "queued")
    quiet.tell("release").answer()  # it woke another: its next question is a quiet one
    assert lock.answer()[0] is True
    for place, each in enumerate((quiet, last), start=1):
        each.tell("acquire")
        eventually(lambda place=place: redis.llen("{x}:queue") == place, "queued")
    channel = redis.lindex("{x}:queue", 0).split(b":")[0]
    quiet.signal(signal.SIGKILL)
    eventually(lambda: redis.pubsub_numsub(channel)[0][1] == 0, "its socket is closed")
    started = time.monotonic()
    lock.tell("release").answer()
    assert last.answer()[0] is True
    assert time.monotonic() - started < 60, "at once, not at its next look after 200 s"
