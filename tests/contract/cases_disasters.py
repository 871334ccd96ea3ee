"""Servers that die. One disaster strikes all locks of the catalogue at once, as starting a server takes a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from loadtest.servers import Valkey
from locks import LockUnavailable, LockUnsupported
from lost_update_lab.embedded.valkey import Persistence
from tests.contract.arena import Arena, in_step
from tests.contract.case import case
from tests.contract.fight import Fight
from tests.contract.party import Party
from tests.contract.promises import Broken
from tests.contract.quiet import SUBJECTS
from tests.contract.site import Site

LONG = 300.0  # seconds: a lease that lasts while all other locks are taken, and while a server dies and comes back
#: where the locks are before, where they are after, and what happens in between
Disaster = tuple[Site, Site, Callable[[], None]]


@case("server-restart")
def server_restart(arena: Arena, lock: Any) -> None:
    """The server is killed and restarted, and nothing was saved. No client gets in while another is inside."""
    _struck(arena, lock, _restart, confirm=4.0, refuses={"durable"})  # its server has no append-only file


@case("failover")
def failover(arena: Arena, lock: Any) -> None:
    """The primary dies, and a replica without the lock is promoted. The same must hold."""
    _struck(arena, lock, _failover, confirm=0.1, refuses={"replicated"})  # the replica stands still


def _struck(
    arena: Arena, lock: Any, disaster: Callable[[Arena], Any], confirm: float, refuses: set[str]
) -> None:
    """`refuses`: locks that must refuse even before the disaster."""
    struck = arena.outcomes.get(disaster)
    if struck is None or lock not in struck:
        locks = {*SUBJECTS.values(), lock}
        asking = [each for each in locks if "failover" not in each.not_applicable]
        struck = arena.outcomes[disaster] = _strike(arena, asking, disaster, confirm)
    before, after = struck[lock]
    if before == (lock.slug in refuses):
        raise RuntimeError(f"before it struck, {'a' if before else 'no'} client got in: this proves nothing")
    if before and after:
        raise Broken("one client was inside, and after the disaster another got in")


def _strike(
    arena: Arena, locks: list[Any], disaster: Callable[[Arena], Any], confirm: float
) -> dict[Any, tuple[bool, bool]]:
    """Return for each lock whether a client was inside before, and whether another got in after."""
    with ExitStack() as stack:
        before, after, strikes = stack.enter_context(disaster(arena))
        fights: list[Fight] = [
            stack.enter_context(arena.fight(each, lease=LONG, confirm=confirm)) for each in locks
        ]
        inside = [_gets_in(fight.party(before)) for fight in fights]
        strikes()
        return {
            fight.factory: (was_inside, _gets_in(fight.party(after)))
            for fight, was_inside in zip(fights, inside, strict=True)
        }


def _gets_in(party: Party) -> bool:
    """A lock may refuse because it knows that it is not safe."""
    with suppress(LockUnavailable, LockUnsupported):
        return party.gets_in()
    return False


@contextmanager
def _pair(persistence: Persistence = None) -> Iterator[tuple[Valkey, Valkey]]:
    """Yield a primary and its replica, in step."""
    with ExitStack() as servers:
        primary = servers.enter_context(Valkey(port=0, persistence=persistence))
        replica = servers.enter_context(
            Valkey(persistence=persistence, config={"replicaof": f"127.0.0.1 {primary.port}"})
        )
        in_step(primary)
        yield primary, replica


@contextmanager
def _restart(arena: Arena) -> Iterator[Disaster]:
    with _pair() as (server, _):
        site = Site(str(server.socket), arena.site.nodes)

        def strikes() -> None:
            server.kill()
            server.start()
            in_step(server)

        yield site, site, strikes


@contextmanager
def _failover(arena: Arena) -> Iterator[Disaster]:
    with _pair("always") as (primary, replica), primary.client() as old, replica.client() as new:
        replica.pause()
        old.client_kill_filter(_type="replica")  # else data that is on its way would arrive after the resume

        def strikes() -> None:
            primary.kill()
            replica.resume()
            new.replicaof("NO", "ONE")

        nodes = arena.site.nodes
        yield Site(str(primary.socket), nodes), Site(str(replica.socket), nodes), strikes
