"""One who wants the lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaiting
from contextlib import suppress
from typing import Any

from loadtest.faults.scene.proxy import Proxy
from locks import LockFactory
from tests.contract.gates import Gate
from tests.contract.promises import wait_until
from tests.contract.quiet import takes
from tests.contract.site import Site, built
from tests.contract.workers import asks_a_server

STEP = 0.02  # seconds


def within(seconds: float, waiting: Future[Any]) -> Any:
    """Its result. Raises StillWaiting when there is none in time, counted in steps: one in which the whole machine
    stands still is no longer than the others."""
    for _ in range(round(seconds / STEP)):
        with suppress(StillWaiting):
            return waiting.result(STEP)
    raise StillWaiting


class Party:
    """One who wants the lock, in a thread of this process, with clients and a gate of its own."""

    def __init__(self, factory: LockFactory, name: str, site: Site, **settings: Any) -> None:
        self.gate = Gate()
        self.lock = built(factory, name, site, self.gate, **settings)
        self.gate.sent = 0  # what it did before is no part of the case
        self._asks_a_server = asks_a_server(factory)
        self._thread = ThreadPoolExecutor(max_workers=1)

    def gets_in(self, timeout: float = 0.0) -> bool:
        return bool(self.lock.acquire(timeout=timeout))

    def takes(self) -> bool:
        """Get in where nobody is inside."""
        return takes(self.lock)

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
            return bool(within(seconds, waiting))
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

    def loses_the_reply(self, proxy: Proxy) -> None:
        """To the command before which it stands: a renewal thread's command must not come in its place."""
        self.gate.keep_others_out()
        wait_until(lambda: not self.gate.under_way)
        proxy.swallow(reads=True)
        self.gate.open_for_it()

    def dies(self) -> None:
        self.gate.kill()
        self._thread.shutdown(wait=True)
