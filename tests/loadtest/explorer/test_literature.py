"""The schedules that the literature tells, on the real strategies, commands and servers."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from loadtest.explorer.lanes import Lanes
from tests.lost_update_lab import story
from tests.lost_update_lab.story import Story

#: name → the story, and its verdict
CASES: dict[str, tuple[Story, str]] = {
    "fair-lock: a dead waiter is handed nothing": (
        Story("fair-lock", (("A", "SELECT"), ("B", "EVALSHA"), ("B", "crash"), ("A", "COMMIT")), faults=1),
        "unbroken",
    ),
    "nobody locks: both read 100": (
        Story("no-lock", (("A", "SELECT"), ("B", "COMMIT"), ("A", "COMMIT"))),
        "lost",
    ),
    "get, then set: both find no lock": (
        Story("naive-lock", (("A", "GET"), ("B", "GET"), ("A", "SELECT"), ("B", "COMMIT"), ("A", "COMMIT"))),
        "lost",
    ),
    "setnx: the holder crashes": (
        Story("setnx", (("A", "SETNX"), ("A", "crash")), faults=1),
        "stalled",
    ),
    "setnx-ttl: the section outlasts the lease": (
        Story("setnx-ttl", (("A", "SELECT"), ("B", "SELECT"), ("A", "COMMIT"), ("B", "COMMIT")), work=6000),
        "lost",
    ),
    "setnx-ttl: a late delete lets a third one in": (
        Story(
            "setnx-ttl",
            (
                ("A", "SELECT"),
                ("B", "SELECT"),
                ("A", "DEL"),
                ("C", "SELECT"),
                ("B", "COMMIT"),
                ("C", "COMMIT"),
            ),
            workers=3,
            work=6000,
        ),
        "lost",
    ),
    "setnx-ttl: an interrupted waiter deletes the holder's lock": (
        Story(
            "setnx-ttl",
            (("A", "SELECT"), ("B", "lost-reply SET"), ("B", "DEL"), ("C", "COMMIT"), ("A", "COMMIT")),
            workers=3,
            faults=1,
        ),
        "lost",
    ),
    "watchdog: it extends another's lock": (
        Story(
            "watchdog",
            (
                ("A", "SELECT"),
                ("A.1", "PTTL"),
                ("A", "pause"),
                ("B", "SET"),
                ("A", "resume"),
                ("B", "SELECT"),
                ("A.1", "PEXPIRE"),
            ),
            faults=1,
            work=12_000,
        ),
        "lost",
    ),
    "watchdog: overtaken between check and delete": (
        Story(
            "watchdog",
            (
                ("A", "GET"),
                ("A", "pause"),
                ("B", "SET"),
                ("A", "resume"),
                ("B", "SELECT"),
                ("A", "DEL"),
                ("C", "COMMIT"),
                ("B", "COMMIT"),
            ),
            workers=3,
            faults=1,
        ),
        "lost",
    ),
    "watchdog: an error in its release, and its thread renews for ever": (
        Story("watchdog", (("A", "COMMIT"), ("A", "lost-reply GET"), ("A.1", "PEXPIRE")), faults=1),
        "stalled",
    ),
    "watchdog-lua: the orphaned thread keeps a dead worker's lock alive": (
        Story(
            "watchdog-lua",
            (
                ("A", "COMMIT"),
                ("A", "pause"),
                ("B", "EVALSHA"),
                ("A", "resume"),
                ("A", "EVALSHA"),
                ("B", "crash"),
                ("C", "EVALSHA"),
                ("A.1", "EXPIRE"),
            ),
            workers=3,
            faults=2,
        ),
        "stalled",
    ),
    "renewal-service: it renews a dead holder's lock": (
        Story("renewal-service", (("A", "SELECT"), ("A", "crash")), faults=1),
        "stalled",
    ),
    "renewal-service: paused before it is registered": (
        Story(
            "renewal-service",
            (
                ("A", "SET"),
                ("A", "pause"),
                ("B", "HSET"),
                ("A", "resume"),
                ("A", "SELECT"),
                ("B", "COMMIT"),
                ("A", "COMMIT"),
            ),
            faults=1,
        ),
        "lost",
    ),
    "timestamp: both delete the dead lock, both win": (
        Story(
            "timestamp",
            (
                ("C", "SETNX"),
                ("C", "crash"),
                *[("A", "GET")] * 7,
                ("B", "GET"),
                ("B", "SELECT"),
                ("A", "SELECT"),
                ("B", "COMMIT"),
                ("A", "COMMIT"),
            ),
            workers=3,
            faults=1,
            settings={"poll": 1.0},
        ),
        "lost",
    ),
    "try-lock: who gives up unlocks the holder": (
        Story(
            "try-lock",
            (("A", "SELECT"), ("B", "DEL"), ("C", "SELECT"), ("A", "COMMIT"), ("C", "COMMIT")),
            workers=3,
            work=6000,
            settings={"extra": {"wait": 0.3}},
        ),
        "lost",
    ),
    "counter: a release by one who holds nothing": (
        Story(
            "tests.lost_update_lab.story:unlocked_in_finally",
            (("A", "SELECT"), ("B", "DEL"), ("C", "SELECT"), ("A", "COMMIT"), ("C", "COMMIT")),
            workers=3,
            work=6000,
        ),
        "lost",
    ),
    "reentrant-inverted: the renewal never renews": (
        Story(
            "reentrant-inverted",
            (("A", "SELECT"), ("B", "SELECT"), ("A", "COMMIT"), ("B", "COMMIT")),
            work=6000,
            settings={"lease": 5.0, "poll": 1.0},
        ),
        "lost",
    ),
    "token: paused past the lease, without fencing": (
        Story("token", (("A", "SELECT"), ("A", "pause"), ("B", "COMMIT"), ("A", "resume")), faults=1),
        "lost",
    ),
    "fenced: paused past the lease, with fencing": (
        Story("fenced", (("A", "EVALSHA"), ("A", "pause"), ("B", "COMMIT"), ("A", "resume")), faults=1),
        "unbroken",
    ),
    "token: 30 s of lease, 60 s of work, no fault": (
        Story(
            "token",
            (("A", "SELECT"), ("B", "SELECT"), ("A", "COMMIT")),
            work=60_000,
            settings={"lease": 30.0, "poll": 1.0},
        ),
        "lost",
    ),
    "redlock: one clock jumps": (
        Story(
            "redlock",
            (
                ("A", "SET"),
                ("A", "SET"),
                ("redis-2", "clock-jump"),
                ("B", "SET"),
                ("B", "SET"),
                ("B", "SET"),
                ("A", "SELECT"),
                ("B", "COMMIT"),
                ("A", "COMMIT"),
            ),
            faults=1,
        ),
        "lost",
    ),
    "redlock: M is too small": (
        Story(
            "redlock",
            (
                ("A", "SET"),
                ("B", "SET"),
                ("B", "SET"),
                ("B", "SET"),
                ("A", "SELECT"),
                ("B", "COMMIT"),
                ("A", "COMMIT"),
            ),
            settings={"extra": {"quorum": 1}},
        ),
        "lost",
    ),
    "replicated-as-published: the replica that did not confirm takes over": (
        Story(
            "replicated-as-published",
            (
                ("A", "lag SET"),
                ("A", "before SELECT"),
                ("redis", "failover"),
                ("A", "SELECT"),
                ("B", "SELECT"),
                ("A", "COMMIT"),
                ("B", "COMMIT"),
            ),
            faults=1,
            work=6000,
            settings={"lease": 20.0},
        ),
        "lost",
    ),
    "select-for-update-late: it reads before it locks": (
        Story("select-for-update-late", (("A", "SELECT"), ("B", "COMMIT"), ("A", "COMMIT"))),
        "lost",
    ),
    "lock-inside-transaction: free before the commit": (
        Story(
            "lock-inside-transaction", (("A", "EVALSHA"), ("B", "SELECT"), ("A", "COMMIT"), ("B", "COMMIT"))
        ),
        "lost",
    ),
    "save-all-fields: a stale object": (
        Story("save-all-fields", (("A", "SELECT"), ("B", "COMMIT"), ("A", "COMMIT"))),
        "lost",
    ),
    "optimistic-value: there and back again (ABA)": (
        Story(
            "optimistic-value",
            (("A", "SELECT"), ("B", "COMMIT"), ("C", "COMMIT"), ("A", "COMMIT")),
            workers=3,
            amounts=(20, 10, -10),
        ),
        "lost",
    ),
    "transfers in opposite order": (
        Story(
            "select-for-update",
            (("A", "SELECT"), ("B", "SELECT"), ("A", "SELECT"), ("B", "SELECT")),
            workload="transfers",
            settings={"ordered": False},
        ),
        "stalled",
    ),
}

#: what the proof must say of it
SAYS = {
    "fair-lock: a dead waiter is handed nothing": ":000000000000001:10000 and hears 1",  # 2: it was handed over
    "get, then set: both find no lock": "over the one that A had set",
    "setnx-ttl: a late delete lets a third one in": "A sends DEL A0001 and hears 1: it was B's",
    "setnx-ttl: an interrupted waiter deletes the holder's lock": "B sends DEL A0001 and hears 1: it was A's",
    "watchdog: it extends another's lock": "A.1 sends PEXPIRE A0001 5000 and hears 1",
    "watchdog: overtaken between check and delete": "A sends DEL A0001 and hears 1: it was B's",
    "timestamp: both delete the dead lock, both win": "A sends DEL A0001 and hears 1: it was B's",
    "try-lock: who gives up unlocks the holder": "B sends DEL A0001 and hears 1: it was A's",
    "counter: a release by one who holds nothing": "B sends DEL A0001 and hears 1",
    "transfers in opposite order": "deadlock",
}


@pytest.fixture(scope="module")
def tell(django_db_blocker: Any) -> Iterator[Callable[[Story], dict[str, Any]]]:
    """Plays a story on servers of its own, in a process that has Django's settings for them."""
    context = multiprocessing.get_context("spawn")
    with django_db_blocker.unblock(), Lanes(1) as lanes:
        pipe, theirs = context.Pipe()
        given = (theirs, lanes._lanes[0].environment, sys.path)
        process = context.Process(target=story.teller, args=given, daemon=True)
        process.start()
        theirs.close()

        def ask(told: Story) -> dict[str, Any]:
            pipe.send(told)
            return pipe.recv()

        yield ask
        pipe.close()
        process.join(100)


@pytest.mark.deep_after(27)
@pytest.mark.parametrize("name", CASES)
def test_the_schedule_that_is_printed(tell: Callable[[Story], dict[str, Any]], name: str) -> None:
    told, word = CASES[name]
    came = tell(told)
    assert "error" not in came, came
    assert (came["word"], came["untold"]) == (word, []), "\n".join(came["sentences"])
    assert len(came["spent"]) == told.faults
    assert SAYS.get(name, "") in "\n".join(came["sentences"])
    assert (came["again"], came["same"]) == (word, True)  # by its short text
    first, second = came["replies"]
    assert second == first


@pytest.mark.parametrize(
    ("strategy", "impossible"),
    [
        ("token", (("A", "SELECT"), ("B", "SELECT"), ("A", "COMMIT"))),
        ("select-for-update", (("A", "SELECT"), ("B", "COMMIT"), ("A", "COMMIT"))),
    ],
)
def test_what_cannot_happen_cannot_be_told(
    tell: Callable[[Story], dict[str, Any]], strategy: str, impossible: tuple[tuple[str, str], ...]
) -> None:
    """The control: a right lock lets no other worker in between."""
    came = tell(Story(strategy, impossible))
    assert came.get("error", "").startswith("LookupError") or came.get("word") == "unbroken", came


@pytest.mark.parametrize("strategy", ["lock-table", "centre-lock", "insert-lock"])
def test_rows_get_the_same_numbers_in_each_schedule(
    tell: Callable[[Story], dict[str, Any]], strategy: str
) -> None:
    """A sequence moves on even in what is rolled back. Each schedule had rows with other numbers, so that no two of
    their states were the same."""
    first, second = tell(Story(strategy, (("A", "COMMIT"), ("B", "COMMIT"))))["replies"]
    assert first == second


@pytest.mark.deep
@pytest.mark.parametrize(("strategy", "looks"), [("select-for-update", False), ("token", True)])
def test_a_time_that_only_people_read_is_no_part_of_a_state(
    tell: Callable[[Story], dict[str, Any]], strategy: str, looks: bool
) -> None:
    """When something was read and written, and for Django's log how long a COMMIT took. (The control's lock looks at
    its lease.)"""
    assert (tell(Story(strategy, (("A", "COMMIT"), ("B", "COMMIT"))))["looks"] > 0) is looks
