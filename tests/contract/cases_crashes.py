"""Holders that die; waiters that die, are interrupted, or give up."""

from __future__ import annotations

import signal
from concurrent.futures import TimeoutError as StillWaiting
from typing import Any

from locks import LockTimeout
from tests.contract.arena import Arena
from tests.contract.case import case
from tests.contract.cases_exclusion import dies_in_acquire
from tests.contract.fight import Fight
from tests.contract.party import Party, within
from tests.contract.promises import Broken, demand
from tests.contract.site import FEW, UNHURRIED, awaited
from tests.contract.workers import Worker


@case("holder-crash")
def holder_crash(arena: Arena, lock: Any) -> None:
    """The holder's process is killed (SIGKILL): the lock comes back with its lease."""
    with arena.fight(lock, lease=awaited(lock), **FEW) as fight:
        holder, waiter = fight.process(), fight.party()
        demand(holder.asks("takes"), "nobody else wanted it, and it was not granted")
        waiting = waiter.waits()
        holder.dies()
        demand(waiter.got_in(waiting, fight.lease + 1), "its holder is dead, and it is not free")


@case("crash-in-acquire")
def crash_in_acquire(arena: Arena, lock: Any) -> None:
    """A client dies before each command of its acquire in turn: the lock comes back with its lease."""
    step = 0
    while True:
        with arena.fight(lock) as fight:
            if not dies_in_acquire(fight.party(), step):
                return
            fight.opens_within(
                fight.lease + 1, f"one died before command {step + 1} of its acquire; it is not free"
            )
        step += 1


@case("waiter-crash")
def waiter_crash(arena: Arena, lock: Any) -> None:
    """A waiter's process is killed: the holder keeps the lock, and after its release others are delayed by
    its lease at most."""
    with arena.fight(lock, lease=2.0) as fight:
        holder, waiter = _held_and_awaited(fight)
        waiter.dies()
        _goes_on(fight, holder)


@case("waiter-cancelled")
def waiter_cancelled(arena: Arena, lock: Any) -> None:
    """A waiter is interrupted (SIGINT, so KeyboardInterrupt in its acquire): the same."""
    with arena.fight(lock, lease=2.0) as fight:
        holder, waiter = _held_and_awaited(fight)
        waiter.signal(signal.SIGINT)
        try:
            demand(waiter.answers() == "interrupted", "it was interrupted, and went in")
        except RuntimeError as error:
            raise Broken(f"it was interrupted, and said {error}") from error
        _goes_on(fight, holder)


def _held_and_awaited(fight: Fight) -> tuple[Party, Worker]:
    waiter = fight.process()  # its start may take longer than a lease
    holder = fight.holder(lease=UNHURRIED)
    waiter.begins("__enter__")
    waiter.waits(fight.arena.admins[0])
    return holder, waiter


def _goes_on(fight: Fight, holder: Any) -> None:
    fight.closed("somebody got in beside the holder")
    holder.leaves()
    fight.opens_within(fight.lease + 1, "the holder released it, and it is not free")


@case("waiter-gives-up")
def waiter_gives_up(arena: Arena, lock: Any) -> None:
    """A waiter's time is over: it is told so, and the holder keeps the lock."""
    with arena.fight(lock, lease=30.0, wait=0.1) as fight:
        holder, waiter = fight.holder(), fight.party()
        waiting = waiter.begins(_enter, waiter.lock)
        try:
            within(3.0, waiting)
        except LockTimeout:
            pass
        except StillWaiting:
            holder.leaves()
            raise Broken("it was to give up after 0.1 s, and after 3 s it still waits") from None
        except Exception as error:
            raise Broken(f"it gave up, and was told {error!r} instead of LockTimeout") from error
        else:
            raise Broken("it was to give up, and went in")
        fight.closed("a waiter gave up, and somebody got in beside the holder")


def _enter(lock: Any) -> None:
    """By `with` where the lock itself has a wait time (0.1 s here): what its `__enter__` does then is its own."""
    if hasattr(lock, "wait"):
        lock.__enter__()
    elif not lock.acquire(timeout=0.1):
        raise LockTimeout("not granted in time")
