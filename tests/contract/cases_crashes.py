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
from tests.contract.site import FEW, MANY, UNHURRIED, awaited
from tests.contract.workers import Worker


@case("holder-crash")
def holder_crash(arena: Arena, lock: Any) -> None:
    """The holder's process is killed (SIGKILL). The lock becomes free when its lease ends."""
    with arena.fight(lock, lease=awaited(lock), **FEW) as fight:
        holder, waiter = fight.process(), fight.party()
        demand(holder.asks("takes"), "no other client wanted the lock, but it was not granted")
        waiting = waiter.waits()
        holder.dies()
        demand(waiter.got_in(waiting, fight.lease + 1), "its holder is dead, but the lock is not free")


@case("crash-in-acquire")
def crash_in_acquire(arena: Arena, lock: Any) -> None:
    """A client dies before each command of its acquire in turn. The lock becomes free when its lease ends."""
    step = 0
    while True:
        with arena.fight(lock) as fight:
            if not dies_in_acquire(fight.party(), step):
                return
            fight.opens_within(
                fight.lease + 1,
                f"a client died before command {step + 1} of its acquire; the lock is not free",
            )
        step += 1


@case("waiter-crash")
def waiter_crash(arena: Arena, lock: Any) -> None:
    """A waiter's process is killed. The holder keeps the lock, and after its release others are delayed by the dead
    waiter's lease at most."""
    with arena.fight(lock, lease=2.0) as fight:
        holder, waiter = _held_and_awaited(fight)
        waiter.dies()
        _goes_on(fight, holder)


@case("waiter-cancelled")
def waiter_cancelled(arena: Arena, lock: Any) -> None:
    """A waiter is interrupted (SIGINT, which raises KeyboardInterrupt in its acquire). The same must hold."""
    with arena.fight(lock, lease=2.0, **MANY) as fight:
        holder, waiter = _held_and_awaited(fight)
        waiter.signal(signal.SIGINT)
        try:
            demand(waiter.answers() == "interrupted", "the waiter was interrupted, but got in")
        except RuntimeError as error:
            raise Broken(f"the waiter was interrupted, but raised {error}") from error
        _goes_on(fight, holder)


def _held_and_awaited(fight: Fight) -> tuple[Party, Worker]:
    waiter = fight.process()  # its start may take longer than a lease
    holder = fight.holder(lease=UNHURRIED)
    waiter.begins("__enter__")
    waiter.waits(fight.arena.admins[0])
    return holder, waiter


def _goes_on(fight: Fight, holder: Any) -> None:
    fight.closed("another client got in while the holder was inside")
    holder.leaves()
    fight.opens_within(fight.lease + 1, "the holder released the lock, but it is not free")


@case("waiter-gives-up")
def waiter_gives_up(arena: Arena, lock: Any) -> None:
    """A waiter's wait time ends. It gets LockTimeout, and the holder keeps the lock."""
    with arena.fight(lock, lease=30.0, wait=0.1) as fight:
        holder, waiter = fight.holder(), fight.party()
        waiting = waiter.begins(_enter, waiter.lock)
        try:
            within(3.0, waiting)
        except LockTimeout:
            pass
        except StillWaiting:
            holder.leaves()
            raise Broken("the waiter should give up after 0.1 s, but after 3 s it still waits") from None
        except Exception as error:
            raise Broken(f"the waiter gave up, but got {error!r} instead of LockTimeout") from error
        else:
            raise Broken("the waiter should give up, but got in")
        fight.closed("after a waiter gave up, another client got in while the holder was inside")


def _enter(lock: Any) -> None:
    """Enter with `with` if the lock has its own wait time (0.1 s here), because its `__enter__` may do more."""
    if hasattr(lock, "wait"):
        lock.__enter__()
    elif not lock.acquire(timeout=0.1):
        raise LockTimeout("not granted in time")
