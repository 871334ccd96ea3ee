"""One client that wants the lock."""

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
    """Return the result. Raises StillWaiting if there is none in time. The time is counted in steps, so that a step in
    which the whole machine stands still counts like any other."""
    for _ in range(round(seconds / STEP)):
        with suppress(StillWaiting):
            return waiting.result(STEP)
    raise StillWaiting


class Party:
    """A client that wants the lock, in a thread of this process, with its own connections and its own gate."""

    def __init__(self, factory: LockFactory, name: str, site: Site, **settings: Any) -> None:
        self.gate = Gate()
        self.lock = built(factory, name, site, self.gate, **settings)
        self.gate.sent = 0  # earlier commands are not part of the case
        self._asks_a_server = asks_a_server(factory)
        self._thread = ThreadPoolExecutor(max_workers=1)

    def gets_in(self, timeout: float = 0.0) -> bool:
        return bool(self.lock.acquire(timeout=timeout))

    def takes(self) -> bool:
        """Get in while no other client is inside."""
        return takes(self.lock)

    def waits(self) -> Future[Any]:
        """Begin to wait, without a limit. Return once it has asked at least once."""
        waiting = self.begins(self.lock.acquire)
        wait_until(lambda: self.gate.sent or waiting.done() or not self._asks_a_server)
        return waiting

    def waits_and_gets_in(self, seconds: float) -> bool:
        return self.got_in(self.waits(), seconds)

    def got_in(self, waiting: Future[Any], seconds: float) -> bool:
        """Return whether it got in within `seconds`. If not, its client is killed."""
        try:
            return bool(within(seconds, waiting))
        except StillWaiting:
            self.gate.kill()
            return False

    def leaves(self) -> None:
        """Release, and ignore any error."""
        with suppress(Exception):
            self.lock.release()

    def begins(self, action: Callable[..., Any], *args: Any, stop_before: int | None = None) -> Future[Any]:
        """Run `action` in the party's own thread. `stop_before`: stop the thread before its n-th command."""

        def run() -> Any:
            if stop_before is not None:
                self.gate.stop_before(stop_before)
            return action(*args)

        return self._thread.submit(run)

    def stands_at_the_gate(self, action: Future[Any]) -> bool:
        """Return True as soon as it stands at the gate, or False if the action ended before that."""
        wait_until(lambda: self.gate.standing or action.done())
        return self.gate.standing

    def loses_the_reply(self, proxy: Proxy) -> None:
        """Lose the reply to the command before which it stands. A renewal thread's command must not take its place."""
        self.gate.keep_others_out()
        wait_until(lambda: not self.gate.under_way)
        proxy.swallow(reads=True)
        self.gate.open_for_it()

    def dies(self) -> None:
        self.gate.kill()
        self._thread.shutdown(wait=True)
