"""Servers that forget and links that fail, one lock at a time. For whole servers that die, see cases_disasters.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from loadtest.faults.scene.proxy import Proxy
from locks import LockLost, LockNotHeld, LockUnavailable, LockUnsupported
from tests.contract.arena import Arena
from tests.contract.case import case
from tests.contract.fight import Fight
from tests.contract.promises import Broken, demand
from tests.contract.site import FEW, UNHURRIED, Site, awaited
from tests.contract.workers import asks_a_server


@case("noscript")
def noscript(arena: Arena, lock: Any) -> None:
    """The servers forget every script (as after a restart), even while the lock is held. The lock still works."""
    with arena.fight(lock, lease=UNHURRIED) as fight:
        party = fight.holder()
        party.lock.release()
        try:
            for _ in range(2):
                demand(party.takes(), "the lock is free, but was not granted")
                for admin in arena.admins:
                    admin.script_flush()
                party.lock.release()
            for admin in arena.admins:
                admin.script_flush()
            demand(party.takes(), "the lock is free, but was not granted")
        except Exception as error:
            raise Broken(f"after SCRIPT FLUSH: {error}") from error


@case("lost-reply")
def lost_reply(arena: Arena, lock: Any) -> None:
    """The reply to each command of acquire and of release in turn is lost: the command was executed, but the client
    sees an error. No client gets a wrong yes or no, and the lock is free after a lease."""
    with Proxy(arena.main.port) as proxy:
        site = replace(arena.site, redis=proxy.port)
        for part in (_lost_in_acquire, _lost_in_release):
            step = 0
            while True:
                with arena.fight(lock, **FEW) as fight:
                    if not part(fight, site, proxy, step):
                        break
                step += 1


def _lost_in_acquire(fight: Fight, site: Site, proxy: Proxy, step: int) -> bool:
    party, newcomer = fight.party(site, lease=UNHURRIED), fight.party()
    acquiring = party.begins(party.takes, stop_before=step)
    if not party.stands_at_the_gate(acquiring):
        return False
    party.loses_the_reply(proxy)
    told = f"the reply to command {step + 1} of acquire was lost"
    try:
        granted = acquiring.result()
        party.gate.open()
    except Exception:  # noqa: BLE001  (published locks raise anything)
        party.dies()  # its client gives up, but may have a thread that continues
        _ends_with_its_lease(fight, told)
        return True
    if granted:
        demand(not newcomer.gets_in(), f"{told}; the lock was granted, and also to the next client")
    else:
        demand(newcomer.gets_in(), f"{told}; the lock was refused, but stays held")
    return True


def _lost_in_release(fight: Fight, site: Site, proxy: Proxy, step: int) -> bool:
    party = fight.party(site, lease=UNHURRIED)
    demand(party.begins(party.takes).result(), "no other client wants the lock, but it was not granted")
    releasing = party.begins(party.leaves, stop_before=step)
    if not party.stands_at_the_gate(releasing):
        return False
    party.loses_the_reply(proxy)
    releasing.result()
    party.gate.open()
    demand(not party.lock.held, "after a release without a reply, the object believes that it holds the lock")
    told = f"the reply to command {step + 1} of release was lost"
    _ends_with_its_lease(fight, told)
    return True


def _ends_with_its_lease(fight: Fight, told: str) -> None:
    demand(fight.remains() <= UNHURRIED, f"{told}; the lock stays for longer than its lease")
    left = awaited(fight.factory)
    fight.passes_time(left)
    fight.opens_within(left + 1, f"{told}; the lock is not free when its lease is over")


@case("typed-errors")
def typed_errors(arena: Arena, lock: Any) -> None:
    """Everything that can go wrong has its own error."""
    with arena.fight(lock, lease=UNHURRIED) as fight:
        party = fight.holder()
        party.lock.release()
        _raises(LockNotHeld, "release without holding", party.lock.release)
        if not asks_a_server(lock):
            return
        demand(party.takes(), "the lock is free, but was not granted")
        fight.forgets()
        _raises(LockLost, "release after the lease", party.lock.release)
        demand(not party.lock.held, "the object raised LockLost, but believes that it holds the lock")
        nowhere = Site(str(arena.main.run / "nobody-listens-here"))
        _raises(LockUnavailable, "no connection", fight.party(nowhere).takes)
        replica = Site(str(arena.replica.socket))
        _raises(LockUnavailable, "a read-only replica", fight.party(replica).takes)
        cut_off = Site(str(arena.cut_off.socket))
        _raises(LockUnavailable, "a primary that misses its replicas", fight.party(cut_off).takes)
        old = Site(str(arena.old_server.socket))
        _raises(
            LockUnsupported,
            "a server without Lua and DELIFEQ",
            _takes_and_gives_back,
            fight.party(old, replicas=0),
        )


def _takes_and_gives_back(party: Any) -> None:
    if party.takes():
        party.lock.release()


def _raises(error: type[Exception], when: str, action: Any, *args: Any) -> None:
    try:
        action(*args)
    except error:
        return
    except Exception as other:
        raise Broken(f"{when}: {other!r} instead of {error.__name__}") from other
    raise Broken(f"{when}: no {error.__name__}")
