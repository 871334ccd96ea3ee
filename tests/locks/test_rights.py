"""Users without all the rights that a lock needs: a clear error, also where a script is refused half-way. And
which rights are enough: those of the table in locks/README.md."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import locks
from loadtest.servers import Valkey
from locks import LOCKS
from locks.errors import LockUnsupported
from locks.fair_lock import questions
from locks.server import LuaScript

from .actor import eventually

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


PAGE = Path(locks.__file__).parent / "README.md"


def rights():
    """{slug: rules}, of the page."""
    found = {}
    for names, where, commands in re.findall(
        r"^\| (`.*) \| (`~.*`) \| (.*) \|$", PAGE.read_text(), re.MULTILINE
    ):
        base = found["token"] if "as `token`" in commands else []
        more = " ".join(re.findall(r"`([^`]+)`", where + commands.replace("as `token`", "")))
        rules = [each.replace("\\", "") for each in more.split()]
        found |= {slug: [*base, *rules] for slug in re.findall(r"`([a-z-]+)`", names)}
    return found


RIGHTS = rights()


def scripts(slug):
    if slug == "compare-and-delete":
        return []  # those of `token` are not run
    shelves = [questions] if slug == "fair-lock" else reversed(LOCKS[slug].__mro__)
    found = {name: each for shelf in shelves for name, each in vars(shelf).items()}
    if slug in ("semaphore", "read-write"):
        found["release_script"] = None  # that of `token`, likewise
    return [each for each in found.values() if isinstance(each, LuaScript)]


@pytest.fixture(scope="module")
def server():
    with Valkey(persistence="always") as started:
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


def party(slug, client):
    """Two that want the same lock, one after the other."""
    needs = {"redis_nodes": [client]} if slug.startswith("redlock") else {"redis": client}
    if slug == "replicated":
        needs["replicas"] = 0
    return [LOCKS[slug]("x", **needs) for _ in range(2)]


@pytest.mark.parametrize("slug", RIGHTS)
def test_the_rights_of_the_page_are_enough(server, slug):
    with server.client() as admin:
        admin.flushall()
        admin.acl_log_reset()
        admin.execute_command("ACL", "SETUSER", slug, "reset", "on", "nopass", *RIGHTS[slug])
        with server.client(username=slug, password=slug) as client, ThreadPoolExecutor(1) as other:
            first, second = party(slug, client)
            for _ in range(3):  # fair-lock asks quietly after the first
                first.acquire()
                assert not second.acquire(timeout=0)
                assert not other.submit(second.acquire, 0.3).result()
                second_in = other.submit(second.acquire)
                first.extend()
                first.release()
                assert second_in.result(60)
                other.submit(second.release).result()
        eventually(lambda: not admin.exists("x"), "it is free")
        refused = {each["object"] for each in admin.acl_log() if each["username"] == slug}
        assert refused <= {"client|setinfo"}, "the client library says who it is; the lock needs it not"


@pytest.mark.parametrize("slug", RIGHTS)
def test_the_page_has_each_command_of_its_scripts(slug):
    """Also those that only a rare branch runs."""
    used = {name.lower() for each in scripts(slug) for name in re.findall(r"redis\.call\('(\w+)'", each.text)}
    assert used <= {rule[1:] for rule in RIGHTS[slug]}
