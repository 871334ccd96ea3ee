"""The servers of the contract, and locks built on clients of their own."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaiting
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from redis import ConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from loadtest.servers import Valkey
from locks import LockFactory, build
from tests.contract.gates import Gate, GatedPort, GatedSocket
from tests.contract.workers import Worker, Workers, asks_a_server

_numbers = itertools.count(1)

#: polls and looks scaled down; `build` takes what a lock understands
SCALED: dict[str, Any] = {"poll": 0.02, "look": 0.03, "confirm": 0.5, "pool_wait": 0.2, "wait": 20.0}


class Broken(AssertionError):
    """The lock broke the promise that the case is about."""


def demand(promise: object, told: str) -> None:
    if not promise:
        raise Broken(told)


#: where somebody waits: a pool of which a lock that leaks uses up the last connection in any case
FEW = {"pool_size": 3}
#: a replica that comes is served at once, not after 5 s
NO_DELAY = {"repl-diskless-sync-delay": 0}


@dataclass(frozen=True)
class Site:
    """Where the servers are: a socket's path, or a port. It can be sent to another process."""

    redis: str | int
    nodes: tuple[str | int, ...] = ()
    client_name: str | None = None

    def named(self, client_name: str) -> Site:
        """The same, for clients that the server knows by this name."""
        return replace(self, client_name=client_name)

    def offers(self, gate: Gate) -> dict[str, Any]:
        clients = [_client(address, gate, self.client_name) for address in (self.redis, *self.nodes)]
        return {"redis": clients[0], "redis_nodes": clients}


def _client(address: str | int, gate: Gate, name: str | None) -> Redis:
    at = {"path": address} if isinstance(address, str) else {"host": "127.0.0.1", "port": address}
    pool = ConnectionPool(
        connection_class=GatedSocket if isinstance(address, str) else GatedPort,
        gate=gate,
        retry=Retry(NoBackoff(), 0),
        client_name=name,
        **at,
    )
    return Redis(connection_pool=pool)


def lease_of(factory: Any) -> float:
    """Seconds: short; whole where the lock knows whole ones only; longer where a thread must be in time for it."""
    return 1.0 if getattr(factory, "lease_step", 0.001) == 1.0 or getattr(factory, "renews", False) else 0.4


def built(factory: LockFactory, name: str, site: Site, gate: Gate, **settings: Any) -> Any:
    lease = settings.setdefault("lease", lease_of(factory))
    keywords = {**SCALED, "below": 0.9 * (lease or 1.0), **settings}
    return build(factory, name, **site.offers(gate), **keywords)


class Party:
    """One who wants the lock, in a thread of this process, with clients and a gate of its own."""

    def __init__(self, factory: LockFactory, name: str, site: Site, **settings: Any) -> None:
        self.gate = Gate()
        self.lock = built(factory, name, site, self.gate, **settings)
        self._asks_a_server = asks_a_server(factory)
        self._thread = ThreadPoolExecutor(max_workers=1)

    def gets_in(self, timeout: float = 0.0) -> bool:
        return bool(self.lock.acquire(timeout=timeout))

    def waits(self) -> Future[Any]:
        """Begin to wait, without a limit. Returns when it has asked at least once."""
        waiting = self.begins(self.lock.acquire)
        wait_until(lambda: self.gate.sent or waiting.done() or not self._asks_a_server)
        return waiting

    def waits_and_gets_in(self, seconds: float) -> bool:
        return self.got_in(self.waits(), seconds)

    def got_in(self, waiting: Future[Any], seconds: float) -> bool:
        """False when it has not got in after `seconds`; then its client is dead."""
        try:
            return bool(waiting.result(seconds))
        except StillWaiting:
            self.gate.kill()
            return False

    def leaves(self) -> None:
        """Release, whatever the lock says about it."""
        with suppress(Exception):
            self.lock.release()

    def begins(self, action: Callable[..., Any], *args: Any, stop_before: int | None = None) -> Future[Any]:
        """Do it in the party's own thread, with that thread stopped before its n-th command."""

        def run() -> Any:
            if stop_before is not None:
                self.gate.stop_before(stop_before)
            return action(*args)

        return self._thread.submit(run)

    def stands_at_the_gate(self, action: Future[Any]) -> bool:
        """True as soon as it stands there; False if the action ended without coming there."""
        wait_until(lambda: self.gate.standing or action.done())
        return self.gate.standing

    def dies(self) -> None:
        self.gate.kill()
        self._thread.shutdown(wait=True)


class Arena:
    """Names are fresh for each case; whoever was in the arena is dead after it."""

    def __init__(self, servers: ExitStack) -> None:
        self.main = servers.enter_context(Valkey(persistence="always", port=0, config=NO_DELAY))
        self.replica = servers.enter_context(Valkey(config={"replicaof": f"127.0.0.1 {self.main.port}"}))
        no_lua = {f"rename-command {each}": "" for each in ("EVAL", "EVALSHA", "DELIFEQ")}
        self.old_server = servers.enter_context(Valkey(config=no_lua))
        self.nodes = [servers.enter_context(Valkey()) for _ in range(2)]
        self.workers = servers.enter_context(Workers())
        self.site = Site(str(self.main.socket), tuple(str(node.socket) for node in self.nodes))
        self.admins = [each.client() for each in (self.main, *self.nodes)]
        self.outcomes: dict[Any, dict[Any, bool]] = {}  # of what strikes all locks at once
        in_step(self.main)

    @contextmanager
    def fight(self, factory: LockFactory, **settings: Any) -> Iterator[Fight]:
        fight = Fight(self, factory, f"contract-{next(_numbers)}", settings)
        try:
            yield fight
        finally:
            fight.ends()

    def clients(self, name: str) -> list[dict[str, Any]]:
        """What the main server says about the connections of the client with this name."""
        return [each for each in self.admins[0].client_list() if each["name"] == name]

    def keys(self, name: str) -> list[tuple[Redis, bytes]]:
        """The lock's own keys on all servers (not its queue, its counter, …)."""
        return [(admin, key) for admin in self.admins for key in admin.scan_iter(f"*{name}", count=1000)]


class Fight:
    """Several parties and processes around one name."""

    def __init__(self, arena: Arena, factory: LockFactory, name: str, settings: dict[str, Any]) -> None:
        self.arena, self.factory, self.name, self.settings = arena, factory, name, settings
        self.site = arena.site
        self.lease: float = settings.get("lease", lease_of(factory))
        self._parties: list[Party] = []
        self._processes: list[Worker] = []

    def party(self, site: Site | None = None, **settings: Any) -> Party:
        party = Party(self.factory, self.name, site or self.site, **{**self.settings, **settings})
        self._parties.append(party)
        return party

    def holder(self, **settings: Any) -> Party:
        party = self.party(**settings)
        demand(party.gets_in(), "nobody else wants it, and it was not granted")
        return party

    def process(self) -> Worker:
        """A process that has the lock's object and does what it is told."""
        worker = self.arena.workers.hire(self.factory, self.name, self.site, self.settings)
        self._processes.append(worker)
        return worker

    def forgets(self) -> None:
        """The server has the lock no longer: what an expiry, an eviction or a restart comes to for its clients."""
        for admin, key in self.arena.keys(self.name):
            admin.delete(key)

    def passes_time(self, left: float) -> float:
        """Of the lease `left` seconds remain, by the server's word. Returns how much was taken off it."""
        taken = 0.0
        for admin, key in self.arena.keys(self.name):
            now = admin.pttl(key) / 1000
            if now > left:
                taken = max(taken, now - left)
                admin.pexpire(key, max(1, int(left * 1000)))
        return taken

    def remains(self) -> float:
        """Seconds of the lease that remain; 0 when the key is gone, -1 when it never ends."""
        times = [admin.pttl(key) for admin, key in self.arena.keys(self.name)]
        return (
            max((time / 1000 if time >= 0 else time for time in times), default=0.0)
            if -1 not in times
            else -1.0
        )

    def closed(self, told: str) -> None:
        """Demand that somebody new does not get in."""
        newcomer = self.party()
        demand(not newcomer.gets_in(), told)

    def opens_within(self, seconds: float, told: str) -> None:
        """Demand that somebody new gets in, in time."""
        newcomer = self.party()
        demand(newcomer.waits_and_gets_in(seconds), f"{told} (not within {seconds:.1f} s)")
        newcomer.begins(newcomer.leaves).result()

    def ends(self) -> None:
        for each in (*self._processes, *self._parties):
            each.dies()
        self.forgets()


def renewers(target: str) -> int:
    """How many threads of this process run the method `target` (Python names a thread after it)."""
    return sum(f"({target})" in thread.name for thread in threading.enumerate())


def in_step(primary: Valkey) -> None:
    """Return when a replica confirms what is written from now on."""
    with primary.client() as admin:
        wait_until(lambda: admin.set("in-step", 1) and admin.wait(1, 100) == 1)


def wait_until(true: Callable[[], Any], patience: float = 15.0) -> None:
    """Ask again and again. Raises TimeoutError when it does not come true."""
    deadline = time.monotonic() + patience
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError("it did not come true")
        time.sleep(0.002)
