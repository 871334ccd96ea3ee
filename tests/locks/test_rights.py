"""Users who may not do all that a lock asks for: said in words, also where a script is refused in its middle."""

import pytest

from loadtest.servers import Valkey
from locks import LOCKS
from locks.errors import LockUnsupported

#: what its scripts ask for last: an acquire, a release, an extension of it that stop halfway
HALFWAY = {
    "token": "get",
    "fenced": "incr",
    "semaphore": "zadd",
    "reentrant-mended": "hset",
    "token-pubsub": "publish",
    "token-queue": "rpush",
    "fair-lock": "append",
    "redis-py": "get",
    "redlock": "get",
    "redlock-reentrant": "hincrby",
}


@pytest.fixture(scope="module")
def server():
    with Valkey() as started:
        yield started


def one_after_another(first, second):
    first.acquire()
    second.acquire(timeout=0.2)
    first.release()


@pytest.mark.parametrize(("slug", "refused"), HALFWAY.items())
def test_a_script_that_is_refused_halfway(server, slug, refused):
    with server.client() as admin:
        admin.flushall()
        rules = ["reset", "on", "nopass", "~*", "&*", "+@all", f"-{refused}"]
        admin.execute_command("ACL", "SETUSER", slug, *rules)
    with server.client(username=slug, password=slug) as client:
        needs = {"redis_nodes": [client]} if slug.startswith("redlock") else {"redis": client}
        first, second = (LOCKS[slug]("x", **needs) for _ in range(2))
        with pytest.raises(LockUnsupported, match=f"'{refused}'"):
            one_after_another(first, second)
