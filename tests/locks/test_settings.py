"""The arguments of a lock: names, leases, quorums. Bad ones are refused, with what to give instead."""

from __future__ import annotations

import inspect
import re
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis import asyncio as redis_asyncio

import locks
from locks import LOCKS, Lock, build
from locks.hazards import Hazard
from locks.in_process import InProcessLock
from locks.server import LuaScript, longest_block
from locks.timing import ends_at, milliseconds, poll_until, whole_seconds
from locks.zookeeper import ZooKeeperLock

SERVERLESS = Redis(unix_socket_path="/nobody/listens/here")
OFFERED: dict[str, Any] = {"redis": SERVERLESS, "redis_nodes": [SERVERLESS] * 3}
#: locks that claim to survive a lost reply on Redis: those cannot do without replies
ANSWERED = [
    slug
    for slug, lock in LOCKS.items()
    if Hazard.LOST_REPLY in lock.withstands
    and {"redis", "redis_nodes"} & inspect.signature(lock).parameters.keys()
]
SCRIPTS = sorted(Path(locks.__file__).parent.rglob("*.lua"))


@pytest.mark.parametrize("slug", LOCKS)
@pytest.mark.parametrize("name", ["", "with space", "new\nline", "{brace}", "x" * 201, "ключ"])
def test_bad_names_are_refused(slug: str, name: str) -> None:
    with pytest.raises(ValueError, match="is no lock name"):
        build(LOCKS[slug], name, **OFFERED)


@pytest.mark.parametrize("slug", [slug for slug, lock in LOCKS.items() if lock.lease_step == 1.0])
@pytest.mark.parametrize("lease", [0.4, 1.5, 0])
def test_whole_seconds_stay_whole(slug: str, lease: float) -> None:
    with pytest.raises(ValueError, match="give whole seconds"):
        build(LOCKS[slug], "x", lease=lease, **OFFERED)


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_a_lease_step_goes_with_a_lease(lock: Any) -> None:
    takes_a_lease = "lease" in inspect.signature(lock).parameters
    assert takes_a_lease == (lock.lease_step is not None) or lock.slug.startswith("counter"), (
        "counter: an offset, no lease"
    )
    assert not lock.renews or lock.lease_step, "what is renewed is a lease"
    assert all((lock.title, lock.source, lock.guarantees, lock.breaks_when, lock.round_trips))


@pytest.mark.parametrize("lease", [0, -1, 0.0001, nan, inf])
def test_leases_of_nothing_are_refused(lease: float) -> None:
    with pytest.raises(ValueError, match=r"give 0\.001 or more"):
        milliseconds(lease)


@pytest.mark.parametrize("lease", [0, -1, nan, inf, 1e300, 2e9])
@pytest.mark.parametrize(
    "slug", [slug for slug, lock in LOCKS.items() if "lease" in inspect.signature(lock).parameters]
)
def test_leases_that_a_server_refuses_are_refused(slug: str, lease: float) -> None:
    """When the lock is made, and in our words: the server's would be an error of the client library."""
    with pytest.raises(ValueError, match=r"a lease of .* s: .*give "):
        build(LOCKS[slug], "x", lease=lease, **OFFERED)


@pytest.mark.parametrize("lease", [0, -1, nan, inf, 1e300, 2e9])
def test_sessions_that_an_ensemble_cannot_be_told_are_refused(lease: float) -> None:
    with pytest.raises(ValueError, match=r"a lease of .* s: give "):
        ZooKeeperLock("x", zookeeper="127.0.0.1:1", lease=lease)


def test_each_name_has_a_node_of_its_own() -> None:
    """A caller that takes two that share a node waits for itself. ZooKeeper knows no node "." or ".."."""
    names = [".", "..", "...", "a.b", "a/b", "a_b", "a//b", "/a/b", "a=2Fb", "a+b", "A:b@c-d"]
    paths = [ZooKeeperLock(name, zookeeper="127.0.0.1:1").path for name in names]
    assert len(set(paths)) == len(names)
    assert all(re.fullmatch(r"/locks/[^/]+", path) and path[7:] not in {".", ".."} for path in paths)
    assert ZooKeeperLock("7:A-1_b.c", zookeeper="127.0.0.1:1").path == "/locks/7:A-1_b.c"


@pytest.mark.parametrize("timeout", [nan, inf, 1e300])
@pytest.mark.parametrize(
    "slug", [slug for slug, lock in LOCKS.items() if "wait-time" not in lock.not_applicable]
)
def test_waits_without_an_end_are_refused(slug: str, timeout: float) -> None:
    """Before anything is asked: there is no server."""
    with pytest.raises(ValueError, match="or None for as long as it takes"):
        build(LOCKS[slug], "x", **OFFERED).acquire(timeout=timeout)  # type: ignore[attr-defined]


def test_leases() -> None:
    assert milliseconds(0.3) == 300
    assert whole_seconds(2.0) == 2


@pytest.mark.parametrize("poll", [0, -1, nan, inf, 1e300, None, "1"])
@pytest.mark.parametrize(
    "slug", [slug for slug, lock in LOCKS.items() if "poll" in inspect.signature(lock).parameters]
)
def test_polls_that_never_or_always_ask_are_refused(slug: str, poll: Any) -> None:
    """When the lock is made: in its waiting loop it would be too late for those that delete in a `finally`."""
    with pytest.raises(ValueError, match="give a number above 0"):
        build(LOCKS[slug], "x", poll=poll, **OFFERED)


@pytest.mark.parametrize(
    "slug", [slug for slug, lock in LOCKS.items() if "cap" in inspect.signature(lock).parameters]
)
@pytest.mark.parametrize("cap", [-1, nan, None])
def test_caps_of_nothing_are_refused(slug: str, cap: Any) -> None:
    with pytest.raises(ValueError, match="give 0 or more"):
        build(LOCKS[slug], "x", cap=cap, **OFFERED)


@pytest.mark.parametrize(
    "client",
    [redis_asyncio.Redis(), redis_asyncio.Redis().pipeline(), SERVERLESS.pipeline()],
    ids=["asyncio", "asyncio's pipeline", "pipeline"],
)
@pytest.mark.parametrize("slug", ANSWERED)
def test_clients_that_do_not_answer_are_refused(slug: str, client: Any) -> None:
    """A coroutine and a pipeline are true: each acquire would be granted, and nothing sent."""
    with pytest.raises(TypeError, match=r"give a redis\.Redis"):
        build(LOCKS[slug], "x", redis=client, redis_nodes=[SERVERLESS, SERVERLESS, client])


@pytest.mark.parametrize("slug", ["redlock", "redlock-reentrant"])
@pytest.mark.parametrize("setting", [{"drift": -0.1}, {"drift": nan}, {"drift": 1}, {"lease": 0.002}])
def test_a_validity_of_nothing_or_beyond_the_lease_is_refused(slug: str, setting: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="give a longer lease, or a drift between 0 and 1"):
        build(LOCKS[slug], "x", **OFFERED | setting)


@pytest.mark.parametrize("permits", [0, -1, 1.5, nan, inf, True, "1"])
def test_permits_that_cannot_be_counted_are_refused(permits: Any) -> None:
    """The server lets everyone in where `nan` are out."""
    with pytest.raises(ValueError, match="give a whole number, 1 or more"):
        build(LOCKS["semaphore"], "x", permits=permits, **OFFERED)


def test_a_wait_without_an_end_is_given_as_none() -> None:
    assert ends_at(None) is None
    with pytest.raises(ValueError, match="or None for as long as it takes"):
        poll_until(lambda: True, 1.0, timeout=nan)


def test_polling_asks_once_more_at_the_end() -> None:
    asked = []
    assert not poll_until(lambda: bool(asked.append(1)), 60.0, timeout=0.01)
    assert len(asked) == 2, "at once, and when the time is over; not after a whole poll of 60 s"
    assert poll_until(lambda: True, 60.0, timeout=0)


def test_blocking_commands_end_before_the_socket_does() -> None:
    assert longest_block(Redis(socket_timeout=5)) == 2.5
    assert longest_block(Redis(socket_timeout=None)) > 1000
    unsaid = Redis.from_url("redis://127.0.0.1")
    limit = unsaid.connection_pool.make_connection().socket_timeout
    assert longest_block(unsaid) == (limit / 2 if limit else 3600)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_say_what_they_take_and_reply(script: Path) -> None:
    text = script.read_text()
    header = _comments(text)
    for other in re.findall(r"\w+\.lua", header):  # "see …"
        header += _comments((script.parent / other).read_text())
    for word in ("KEYS", "ARGV"):
        numbers = {n for n in range(1, 12) if f"{word}[{n}]" in text}
        assert all(f"{word}[{n}]" in header for n in numbers), f"{script.name}: {word} without a word on it"
    assert "reply" in header or "Returns" in header


def _comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith("--"))


@pytest.mark.parametrize("slug", LOCKS)
def test_scripts_are_used(slug: str) -> None:
    """Every LuaScript of a lock has its file."""
    for _, value in inspect.getmembers(LOCKS[slug], lambda each: isinstance(each, LuaScript)):
        assert value.text.startswith("-- ")


@pytest.mark.parametrize("slug", [slug for slug, lock in LOCKS.items() if lock.extend is Lock.extend])
def test_a_lock_that_cannot_extend_says_why(slug: str) -> None:
    lack = "no lease to extend" if LOCKS[slug].lease_step is None else "no way to extend its lease"
    with pytest.raises(NotImplementedError, match=f"^{slug} has {lack}$"):
        Lock.extend(build(LOCKS[slug], "x", **OFFERED))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "spec", [":x", ".a:b", "a..b:c", "json:", "json:x", "json:loads.", "no_such_module:x", "none"]
)
def test_a_lock_that_cannot_be_found_is_a_lookup_error(spec: str) -> None:
    with pytest.raises(LookupError, match=re.escape(spec)):
        locks.find(spec)


@pytest.mark.parametrize("text", ["def (:", "1 / 0", "raise SystemExit(0)"])
def test_a_module_that_cannot_be_loaded_is_a_lookup_error(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_strangers_module.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LookupError, match="cannot load the lock 'a_strangers_module:lock'"):
        locks.find("a_strangers_module:lock")


@pytest.mark.parametrize("timeout", [-1, -0.5, 0])
def test_a_wait_time_that_is_over_means_one_attempt(timeout: float) -> None:
    with InProcessLock("x") as lock:
        assert not InProcessLock("x").acquire(timeout=timeout)
        assert lock.held
    assert InProcessLock("x").acquire(timeout=timeout)
    locks.in_process._LOCKS["x"].release()
