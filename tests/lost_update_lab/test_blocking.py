"""A command that blocks with a time-out blocks in virtual time: how long a search takes on the wall ends nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
import redis

from lost_update_lab.harness import Harness
from lost_update_lab.harness.play import play
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.runs.found import Found
from lost_update_lab.runs.place import beside
from lost_update_lab.runs.run import Run
from lost_update_lab.servers.redis.commands import for_ever, packed
from tests.lost_update_lab import bank


def handed_over(own: bank.Bank, amount: int) -> str:
    """A waits for half a second, at most, until B hands it the lock."""
    if amount == 20:
        bank.add(own, amount)
        own.redis.lpush("free", "B")
        return "ok"
    if own.redis.blpop("free", 0.5) is None:
        raise bank.GaveUp
    return bank.add(own, amount)


def test_the_servers_own_clock_ends_no_wait(harness: Callable[..., Harness]) -> None:
    known = harness(handed_over)
    admin = known.system.admin_redis  # type: ignore[attr-defined]
    passed: list[float] = []

    def clock() -> float:
        seconds, micros = admin.time()
        return float(seconds + micros / 1e6)

    def slowly(run: Run, transitions: Sequence[Transition]) -> int:
        """A goes first; and once it waits, more than its time-out passes on the server before B goes on."""
        if run.task("A").op is not None and run.task("A") in run.waiting_line and not passed:
            with beside():
                begun = clock()
                while clock() - begun < 1.0:
                    pass
            passed.append(1.0)
        own = [i for i, o in enumerate(transitions) if o == Transition(Kind.STEP, "A")]
        return own[0] if own and not passed else 0

    found, run = play(known, {}, slowly)
    assert passed, "A did wait"
    assert found.word == UNBROKEN, [step.command for step in run.steps]


def goes_on_after_an_error(own: bank.Bank, amount: int) -> str:
    """A works for 6 s, and then tells B, which waits for a minute."""
    if amount == 10:
        bank.add(own, amount, work=6)
        own.redis.lpush("free", "A")
        return "ok"
    with suppress(redis.TimeoutError):
        if own.redis.blpop("free", 60) is None:
            raise bank.GaveUp
    return bank.add(own, amount)


def test_a_client_reads_for_five_seconds(explore: Callable[..., Found]) -> None:
    """redis-py does, if it is told nothing else: a minute was believed, and what comes of the error was kept."""
    assert explore(goes_on_after_an_error, faults=0).worst == "lost"


@pytest.mark.parametrize("beside_it", [["GET", "count"], ["BLPOP", "queue", 1]])
def test_beside_another_thread_with_the_same_client(
    explore: Callable[..., Found], beside_it: list[object]
) -> None:
    """A replay gave both threads one connection: the search hung, or crashed."""

    def in_two_threads(own: bank.Bank, amount: int) -> str:
        client = own.redis
        threads = [
            threading.Thread(target=client.execute_command, args=each)
            for each in (["BLPOP", "queue", 1], beside_it)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        return "ok" if amount == 10 else bank.no_lock(own, amount)

    found = explore(in_two_threads, faults=0)
    assert found.exhausted, found.cause


@pytest.mark.parametrize(
    ("command", "sent"),
    [
        ("BLPOP a b 0.5", "BLPOP a b 0"),
        ("BLMPOP 0.5 1 a LEFT", "BLMPOP 0 1 a LEFT"),
        ("WAIT 1 1000", "WAIT 1 0"),
        ("WAITAOF 1 0 1000", "WAITAOF 1 0 0"),
        ("XREAD COUNT 1 block 500 STREAMS a 0", "XREAD COUNT 1 block 0 STREAMS a 0"),
        ("XREAD COUNT 500 STREAMS a 0", "XREAD COUNT 500 STREAMS a 0"),
        ("GET 1000", "GET 1000"),
    ],
)
def test_the_time_out_is_left_to_the_explorer(command: str, sent: str) -> None:
    words = command.encode().split()
    assert for_ever(words, packed(words)) == packed(sent.encode().split())
