"""A try that left nothing behind may be called the same as the next one; no other may (schedule/retries.py)."""

from __future__ import annotations

import random
import re
import secrets
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import pytest

from lost_update_lab.model.bounds import Fault, Reduction
from lost_update_lab.model.chance import Try, forms
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.schedule import retries
from lost_update_lab.search.search import SearchResult
from tests.lost_update_lab import bank

Explore = Callable[..., SearchResult]


def a_token_for_each_try(own: bank.Bank, amount: int) -> str:
    """As Redlock: a lock is two keys, and a worker that gets only one gives it back. Here each begins with another one:
    neither may get both, try after try."""
    first, second = ("one", "two") if amount == 10 else ("two", "one")
    while True:
        token = secrets.token_hex()
        if own.redis.set(first, token, nx=True):
            if own.redis.set(second, token, nx=True):
                break
            own.redis.delete(first)
        time.sleep(0.5 + random.random())
    bank.add(own, amount)
    own.redis.delete(second, first)
    return "ok"


def gone_if_it_stays_the_same(own: bank.Bank, amount: int) -> str:
    """A waiter that sees the same token twice takes its owner for dead, as if it were a lease. Each try has a new one,
    so an owner that keeps trying is alive: A's lock is kept as long as B can tell its tries apart."""
    met = None
    for _ in range(4):
        token = uuid.uuid4().hex
        if own.redis.set("lock", token, nx=True):
            if amount == 10 and own.redis.incr("A tries") < 4:
                own.redis.delete("lock")
                time.sleep(1)
                continue
            bank.add(own, amount)
            own.redis.delete("lock")
            return "ok"
        holder = own.redis.get("lock")
        if holder is not None and holder == met:
            own.redis.set("taken for dead", holder)
        met = holder or met
        time.sleep(1)
    raise bank.GaveUp


def shapes(result: SearchResult) -> set[bytes]:
    """What was left, the tokens numbered as they come: a token is only a name, and each place of the code draws others
    under another name of its module."""
    return {_numbered(final) for final in result.finals}


def _numbered(final: bytes) -> bytes:
    names: dict[bytes, bytes] = {}
    return re.sub(rb"[0-9a-f]{64}", lambda found: names.setdefault(found[0], b"token %d" % len(names)), final)


@pytest.mark.deep
def test_tries_with_a_token_each_end(explore: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    full = explore(a_token_for_each_try, faults=1, kinds=frozenset({Fault.CRASH}))
    assert (full.worst, full.exhausted, full.cause) == ("stalled", True, "")
    monkeypatch.setattr(retries, "again", lambda run, task: False)
    control = explore(a_token_for_each_try, faults=1, kinds=frozenset({Fault.CRASH}))
    assert (control.exhausted, control.cause) == (True, ""), "a search that was cut short has found less"
    assert shapes(control) == shapes(full)
    assert control.states > 4 * full.states, "each try is a moment of its own then"


@pytest.mark.deep
def test_the_referee_finds_nothing_else(explore: Explore) -> None:
    full, every = (explore(a_token_for_each_try, reduction=how, budget=20) for how in Reduction)
    assert (full.worst, full.exhausted, full.cause) == (UNBROKEN, True, "")
    assert shapes(every) <= shapes(full), "it draws a new token for each try"


@pytest.mark.deep
def test_a_worker_that_received_a_name_can_tell_two_tries_apart(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search finds what the referee finds; one that forgets who received a name takes a live owner for dead."""
    every = explore(gone_if_it_stays_the_same, reduction=Reduction.NONE)
    full = explore(gone_if_it_stays_the_same)
    assert every.exhausted
    assert full.exhausted
    assert _dead(full) == _dead(every)
    monkeypatch.setattr(retries, "hear", lambda run, task, what: None)
    assert _dead(explore(gone_if_it_stays_the_same)) != _dead(every), "the control"


def _dead(result: SearchResult) -> set[bool]:
    return {b"taken for dead" in repr(final).encode() for final in result.finals}


@pytest.mark.parametrize(
    "written",
    [
        lambda drawn: drawn.hex(),
        lambda drawn: str(uuid.UUID(bytes=drawn, version=4)),
        lambda drawn: urlsafe_b64encode(drawn).decode().rstrip("="),
        lambda drawn: f"holder:{int.from_bytes(drawn, 'big')}" if drawn[0] else "",
        repr,
    ],
)
def test_a_name_is_recognised_in_each_form(written: Callable[[bytes], str]) -> None:
    drawn = random.Random(3).randbytes(16)
    names = forms(drawn) + forms(int.from_bytes(drawn, "big"))
    assert any(form in written(drawn).encode() for form in names)


@pytest.mark.parametrize("value", [0.25, 5, True, None, "heads", b"abc", [1 << 40]])
def test_a_number_that_may_come_twice_names_nothing(value: Any) -> None:
    assert forms(value) == ()


def _closed(*tries: tuple[bytes, bytes]) -> Try:
    """After these tries: (what was drawn, what was sent)."""
    from lost_update_lab.model.workers import Task, WorkerProcess

    worker = WorkerProcess("A", 0)
    worker.tasks.append(task := Task("A", worker, main=True))
    for drawn, sent in tries:
        worker.trying.drawn = ()
        retries.draw(task, forms(drawn))
        retries.send(task, sent)
        retries.close(task)
    return worker.trying


def test_tries_are_the_same_if_their_names_are_left_out() -> None:
    one, other = b"\x01" * 8, b"\x02" * 8
    assert _closed((one, b"SET " + one), (other, b"SET " + other)).repeats
    assert not _closed((one, b"SET " + one), (other, b"DEL " + other)).repeats
    assert not _closed((one, b"SET 17"), (other, b"SET 18")).repeats, "a form that nobody knows"
    assert not _closed((one, b"SET " + one)).repeats, "the first one"
