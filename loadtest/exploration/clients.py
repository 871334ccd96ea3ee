"""Each worker stands for a process: it has Redis clients of its own, and its own caches."""

from __future__ import annotations

from functools import cache
from typing import Any

from ledger import resources
from loadtest.explorer.gates.here import anywhere
from loadtest.explorer.gates.patch import Patches


class OwnClients:
    """Puts a client for each worker in the place of the one for each process."""

    def __init__(self) -> None:
        self._shared: Any = resources.redis_client
        self._made = cache(lambda worker, url: self._shared.__wrapped__(url))

    def redis_client(self, url: str = "") -> Any:
        place = anywhere()
        return self._shared(url) if place is None else self._made(place.task.worker.index, url)

    def install(self, patches: Patches) -> None:
        patches.everywhere(resources.redis_client, self.redis_client)
