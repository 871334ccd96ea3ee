"""Clients that repeat by themselves, as redis-py does by default: they re-send a command whose reply was lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any, Self

from redis.backoff import AbstractBackoff, NoBackoff
from redis.retry import Retry

from loadtest.faults.scene.proxy import Proxy
from locks import LockUnavailable
from tests.contract.arena import Arena
from tests.contract.case import case
from tests.contract.fight import Fight
from tests.contract.promises import demand
from tests.contract.site import UNHURRIED, Site

AGAIN = 3


class Meanwhile(AbstractBackoff):
    """What happens between a command whose reply was lost and its repetition."""

    def __init__(self, comes: Callable[[], object]) -> None:
        self._comes = comes

    def compute(self, failures: int) -> float:
        self._comes()
        return 0

    def __deepcopy__(self, memo: object) -> Self:  # each connection has its own copy of its client's
        return self


@case("acquire-repeated")
def acquire_repeated(arena: Arena, lock: Any) -> None:
    """The reply to each command of acquire in turn is lost, and the client sends the command again. It gets in, and one
    release frees the lock. A client that repeats nothing gets LockUnavailable."""
    with Proxy(arena.main.port) as proxy:
        site = replace(arena.site, redis=proxy.port, retry=Retry(NoBackoff(), AGAIN))
        step = 0
        while True:
            with arena.fight(lock, lease=UNHURRIED) as fight:
                if not _repeated_in_acquire(fight, site, proxy, step):
                    return
            proxy.disarm()  # it may have gone to another node
            step += 1


def _repeated_in_acquire(fight: Fight, site: Site, proxy: Proxy, step: int) -> bool:
    _knows_its_scripts(fight)
    party = fight.party(site)
    acquiring = party.begins(party.takes, stop_before=step)
    if not party.stands_at_the_gate(acquiring):
        return False
    party.loses_the_reply(proxy)
    told = f"command {step + 1} of acquire was sent again"
    try:
        granted = acquiring.result()
    except LockUnavailable:
        return True
    party.gate.open()
    demand(granted, f"{told}: the client was refused the lock that it holds itself")
    party.begins(party.lock.release).result()
    demand(fight.party().gets_in(), f"{told}: the lock was released, but is not free")
    return True


def _knows_its_scripts(fight: Fight) -> None:
    """Let the server load the scripts. Otherwise the reply that is lost would be "no such script"."""
    fight.holder().leaves()


@case("release-repeated")
def release_repeated(arena: Arena, lock: Any) -> None:
    """The reply to each command of release in turn is lost, a successor gets in if the lock is free, and then the same
    command comes again. The successor keeps the lock."""
    inside: list[bool] = []
    with Proxy(arena.main.port) as proxy:
        step = 0
        while True:
            with arena.fight(lock, lease=UNHURRIED, look=UNHURRIED) as fight:
                if not _repeated_in_release(fight, proxy, step, inside):
                    break
            proxy.disarm()  # it may have gone to another node
            step += 1
    one_of_many = "redis_nodes" in signature(lock).parameters  # the others keep the successor out
    demand(any(inside) or not inside or one_of_many, "no command of the release freed the lock")


def _repeated_in_release(fight: Fight, proxy: Proxy, step: int, inside: list[bool]) -> bool:
    _knows_its_scripts(fight)
    successor = fight.party()
    retry = Retry(Meanwhile(lambda: inside.append(successor.gets_in())), AGAIN)
    late = fight.party(replace(fight.site, redis=proxy.port, retry=retry))
    demand(late.begins(late.takes).result(), "no other client wants the lock, but it was not granted")
    releasing = late.begins(late.leaves, stop_before=step)
    if not late.stands_at_the_gate(releasing):
        return False
    late.loses_the_reply(proxy)
    releasing.result()
    late.gate.open()
    if any(inside[-1:]):
        fight.closed(f"command {step + 1} of the release was sent again, and freed the successor's lock")
    return True
