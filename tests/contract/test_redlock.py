"""Redlock: the exact odds, by simulation and on real servers; a quorum that is too small; counts that come apart."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from locks import LOCKS, LockUnavailable, LockUnsupported, build
from locks.redlock_odds import broken, forgetting_that_breaks, manual, unavailable
from tests.contract.arena import Arena
from tests.contract.fight import Fight
from tests.contract.party import Party
from tests.contract.site import UNHURRIED

PAGE = Path(__file__).resolve().parents[2] / "docs" / "redlock.md"
REDLOCK, REENTRANT = LOCKS["redlock"], LOCKS["redlock-reentrant"]


def subsets(nodes: Any) -> Any:
    nodes = list(nodes)
    return chain.from_iterable(combinations(nodes, size) for size in range(len(nodes) + 1))


def without(arena: Arena, fight: Fight, absent: Any) -> None:
    """On these nodes the lock cannot be taken: something else is there."""
    for node in absent:
        arena.admins[node].set(fight.name, "something else", nx=True)


def back(arena: Arena, fight: Fight, absent: Any) -> None:
    for node in absent:
        arena.admins[node].delete(fight.name)


@pytest.mark.parametrize("quorum", [1, 2, 3])
def test_odds_on_real_nodes(arena: Arena, quorum: int) -> None:
    """Every way to take a lock on three nodes, and every way in which they can forget it."""
    for taken in (each for each in subsets(range(3)) if len(each) >= quorum):
        for forgetful in subsets(taken):
            with arena.fight(REDLOCK, lease=UNHURRIED, quorum=quorum) as fight:
                absent = set(range(3)) - set(taken)
                without(arena, fight, absent)
                fight.holder()
                back(arena, fight, absent)
                back(arena, fight, forgetful)
                second_is_inside = fight.party().gets_in()
            enough = len(forgetful) >= forgetting_that_breaks(len(taken), 3, quorum)
            assert second_is_inside == enough, (quorum, taken, forgetful)


def test_an_extension_that_a_quorum_has_not_confirmed_is_none(arena: Arena) -> None:
    """Taken on nodes 1 and 2; node 2 cannot be reached now, and node 3 never had it."""
    with arena.fight(REDLOCK, lease=UNHURRIED) as fight:
        without(arena, fight, [2])
        holder = fight.holder()
        back(arena, fight, [2])
        until = holder.lock._valid_until
        holder.lock.nodes[1] = Redis(port=1, retry=Retry(NoBackoff(), 0))
        with pytest.raises(LockUnavailable, match="1 nodes extended it, 2 needed"):
            holder.lock.extend()
        assert holder.lock._valid_until == until


def test_a_failed_attempt_extends_no_lease(arena: Arena) -> None:
    with arena.fight(REDLOCK, lease=UNHURRIED) as fight:
        holder = fight.holder()
        until = holder.lock._valid_until
        assert not holder.lock.acquire(timeout=0)
        assert holder.lock._valid_until == until


@pytest.mark.parametrize(("nodes", "quorum"), [(3, 2), (5, 3), (5, 4)])
@pytest.mark.parametrize("p", [0.05, 0.3])
def test_odds_by_simulation(nodes: int, quorum: int, p: float) -> None:
    dice, rounds = random.Random(f"{nodes}{quorum}{p}"), 40_000
    down = [sum(dice.random() < p for _ in range(nodes)) for _ in range(rounds)]
    bare = [sum(dice.random() < p for _ in range(quorum)) for _ in range(rounds)]
    seen = {
        unavailable(p, nodes, quorum): sum(nodes - each < quorum for each in down),
        broken(p, nodes, quorum): sum(each >= quorum for each in down),
        broken(p, nodes, quorum, taken=quorum): sum(nodes - quorum + each >= quorum for each in bare),
    }
    for exact, count in seen.items():
        assert count / rounds == pytest.approx(exact, abs=4 * (exact * (1 - exact) / rounds) ** 0.5)


def test_the_manual_is_too_sure() -> None:
    assert manual(0.01, 5) < unavailable(0.01, 5, 3) / 10_000
    assert broken(0.01, 5, 3, taken=3) > 0.029
    with pytest.raises(ValueError, match="no such lock"):
        broken(0.01, 5, 3, taken=2)


def test_page_has_these_figures() -> None:
    rows = re.findall(
        r"^\| (\d) \| (\d) \| (\d) \| (.*?) % \| (.*?) % \| (.*?) % \| (.*?) % \|$", PAGE.read_text(), re.M
    )
    assert len(rows) == 4
    for row in rows:
        nodes, quorum, p = int(row[0]), int(row[1]), int(row[2]) / 100
        exact = (
            manual(p, nodes),
            unavailable(p, nodes, quorum),
            broken(p, nodes, quorum),
            broken(p, nodes, quorum, taken=quorum),
        )
        assert [float(told) for told in row[3:]] == pytest.approx([100 * each for each in exact], rel=0.01)


def test_a_quorum_of_half_lets_two_in(arena: Arena) -> None:
    """M ≤ N/2, and no fault at all: one client comes to node 1 first, the other to node 2."""
    with arena.fight(REDLOCK, lease=UNHURRIED, quorum=1) as fight:
        first, second = Party(REDLOCK, fight.name, fight.site, quorum=1), fight.party()
        first.lock.nodes.reverse()
        acquiring = first.begins(first.gets_in, stop_before=1)
        assert first.stands_at_the_gate(acquiring)
        assert second.gets_in()
        first.gate.open()
        assert acquiring.result()
        first.dies()


def test_counts_come_apart(arena: Arena) -> None:
    """The docstring's sequence: node 3 misses the first entry, so its count ends one release too early."""
    with arena.fight(REENTRANT, lease=UNHURRIED) as fight:
        arena.admins[2].hset(fight.name, "somebody else", 1)
        party = fight.holder()
        back(arena, fight, [2])
        assert party.gets_in()
        party.lock.release()
        assert party.lock.held
        assert [len(admin.hgetall(fight.name)) for admin in arena.admins] == [1, 1, 0]
        back(arena, fight, [1])
        assert fight.party().gets_in(), (
            "a second one is inside, by node 2 that forgot and node 3 that miscounted"
        )


@pytest.mark.parametrize("cascade", [False, True])
def test_one_count_at_zero_releases_all_nodes(arena: Arena, cascade: bool) -> None:
    """D9: the second entry fails on node 3. One release then frees node 3, and with the cascade all nodes."""
    with arena.fight(REENTRANT, lease=UNHURRIED, cascade=cascade) as fight:
        party = fight.holder()
        assert party.gets_in()
        arena.admins[2].hincrby(fight.name, party.lock.token, -1)  # as if this node had missed the entry
        party.lock.release()
        assert party.lock.held, "it went in twice, and out once"
        assert [len(admin.hgetall(fight.name)) for admin in arena.admins] == (
            [0] * 3 if cascade else [1, 1, 0]
        )
        assert fight.party().gets_in() == cascade, "no node has failed or forgotten"


def test_m_above_1_is_not_enough(arena: Arena) -> None:
    """B9's rule with N = 5 and M = 2: two clients inside, and no node fails. Five keyspaces of one server."""
    nodes = [Redis(unix_socket_path=str(arena.main.socket), db=number) for number in range(5)]
    first, second = (build(REDLOCK, "m-above-1", redis_nodes=nodes, quorum=2) for _ in range(2))
    for slow in nodes[2:]:
        slow.set("m-above-1", "these nodes are slow at that moment")
    assert first.acquire(timeout=0)  # type: ignore[attr-defined]
    for slow in nodes[2:]:
        slow.delete("m-above-1")
    assert second.acquire(timeout=0)  # type: ignore[attr-defined]
    assert first.held  # type: ignore[attr-defined]
    assert forgetting_that_breaks(taken=2, nodes=5, quorum=2) == 0
    for lock in (first, second):
        lock.release()  # type: ignore[attr-defined]
    for node in nodes:
        node.close()


def test_too_few_nodes_is_an_error(arena: Arena) -> None:
    with arena.fight(REDLOCK, lease=UNHURRIED) as fight:
        dead = build(REDLOCK, fight.name, redis_nodes=[*fight.party().lock.nodes[:1], *nowhere(2)])
        with pytest.raises(LockUnavailable, match="1 of 3 nodes answered, 2 needed"):
            dead.acquire(timeout=0)
        alive = build(REDLOCK, fight.name, redis_nodes=[*fight.party().lock.nodes[:2], *nowhere(1)])
        assert alive.acquire(timeout=0), "one of three may be down"
        alive.release()
    with pytest.raises(ValueError, match="quorum of 4 among 3"):
        build(REDLOCK, "x", redis_nodes=nowhere(3), quorum=4)


def nowhere(count: int) -> list[Any]:
    return [Redis(unix_socket_path="/nobody/listens/here", retry=Retry(NoBackoff(), 0)) for _ in range(count)]


def test_a_node_that_refuses_the_command_keeps_no_other_node_locked(arena: Arena) -> None:
    """The error goes to the caller at once: what the nodes before it have granted is given back."""
    with arena.fight(REDLOCK, lease=UNHURRIED) as fight:
        with may_not(arena.admins[-1], "set"), pytest.raises(LockUnsupported):
            fight.party().gets_in()
        assert [node.exists(fight.name) for node in arena.admins] == [0, 0, 0]


def counts(arena: Arena, fight: Fight) -> list[list[bytes]]:
    return [node.hvals(fight.name) for node in arena.admins]


def test_reentrant_an_entry_that_a_node_refuses_is_counted_by_none(arena: Arena) -> None:
    """As above, also of the one that is inside already: it is inside no less, and no more."""
    with arena.fight(REENTRANT, lease=UNHURRIED) as fight:
        party, second = fight.party(), arena.admins[1]
        with may_not(second, "eval", "evalsha"), pytest.raises(LockUnsupported):
            party.gets_in()
        assert counts(arena, fight) == [[], [], []]
        assert party.gets_in()
        with may_not(second, "eval", "evalsha"), pytest.raises(LockUnsupported):
            party.gets_in()
        assert counts(arena, fight) == [[b"1"], [b"1"], [b"1"]]


def test_reentrant_an_exit_that_a_node_refuses_is_counted_by_all_others(arena: Arena) -> None:
    with arena.fight(REENTRANT, lease=UNHURRIED) as fight:
        party = fight.holder()
        assert party.gets_in()
        with may_not(arena.admins[1], "eval", "evalsha"), pytest.raises(LockUnsupported):
            party.lock.release()
        assert counts(arena, fight) == [[b"1"], [b"2"], [b"1"]]


def test_a_node_that_refuses_writes_is_as_good_as_down(arena: Arena) -> None:
    """A primary that misses its replicas answers, and grants nothing: the other two are a quorum."""
    first = arena.admins[0]
    with arena.fight(REDLOCK, lease=30.0) as fight:
        holder = fight.party()
        with refuses_writes(first):
            assert holder.gets_in()
            assert [node.exists(fight.name) for node in arena.admins] == [0, 1, 1]
            holder.lock.extend()
            holder.lock.release()
        assert [node.exists(fight.name) for node in arena.admins] == [0, 0, 0]


@contextmanager
def refuses_writes(server: Redis) -> Iterator[None]:
    server.config_set("min-replicas-to-write", 9)
    try:
        yield
    finally:
        server.config_set("min-replicas-to-write", 0)


def test_a_node_that_refuses_the_release_keeps_no_other_node_locked(arena: Arena) -> None:
    with arena.fight(REDLOCK, lease=30.0) as fight:
        holder = fight.holder()
        with may_not(arena.admins[0], "eval", "evalsha"), pytest.raises(LockUnsupported):
            holder.lock.release()
        assert [node.exists(fight.name) for node in arena.admins] == [1, 0, 0]


@contextmanager
def may_not(server: Redis, *commands: str) -> Iterator[None]:
    """Its clients may run everything else."""
    user: dict[str, Any] = {"username": "default", "enabled": True, "nopass": True, "keys": ["*"]}
    server.acl_setuser(**user, commands=["+@all", *(f"-{each}" for each in commands)])
    try:
        yield
    finally:
        server.acl_setuser(**user, commands=["+@all"])
