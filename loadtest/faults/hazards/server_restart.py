"""server-restart: SIGKILL of Valkey while workers are inside, and a new start. What does the server still know?

    server-restart            no persistence: it forgets everything
    server-restart-everysec   append-only file, fsync once a second. A killed process loses nothing, because the kernel
                              has the data. So this simulates a power cut: writes after the last fsync are cut off
    server-restart-always     append-only file, fsync before each answer

Proof        another run id of the server; the lock's keys before and after.
Cannot touch a strategy that uses no Valkey; `durable`, which grants nothing without an append-only file.
Cleans up    the server and its replica (which `replicated` needs) belong to the party, and end with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from loadtest.faults.hazards.adversary import Party
from loadtest.faults.scene.scene import EASY_LEASE
from loadtest.servers import Valkey
from loadtest.trials import dependencies
from locks.hazards import Hazard
from lost_update_lab.embedded.valkey import Persistence

if TYPE_CHECKING:
    from loadtest.faults.scene.site import Site


UNSYNCED = 2.0  # seconds that `everysec` may lose: the server waits up to 2 s for an fsync that is late


class ServerRestart(Party):
    slug = "server-restart"
    word = Hazard.SERVER_RESTART
    own_valkey = True
    lease = EASY_LEASE
    persistence: ClassVar[Persistence] = None
    power_cut: ClassVar[bool] = False
    _mark = 0
    _at = 0.0

    def not_applicable(self, strategy: str, store: str) -> str | None:
        waits = getattr(dependencies.factory_of(strategy), "waits_for_disk", False)
        if waits and self.persistence is None:
            return "it grants nothing on a server without an append-only file"
        if waits and self.power_cut:
            return "it waits for the fsync (WAITAOF), so no lock that it granted can be cut off"
        return super().not_applicable(strategy, store)

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        with pair(self.persistence) as server:
            yield shared.with_valkey(server)

    def prepare(self, site: Site) -> None:
        self._mark, self._at = _size(site.valkey), time.monotonic()

    def event(self, site: Site) -> str:
        server = site.valkey
        old = server.info("server")["run_id"]
        server.kill()
        took = time.monotonic() - self._at
        if self.power_cut and took < UNSYNCED:
            with _log(server).open("r+b") as log:
                log.truncate(self._mark)
        server.start()
        new = server.info("server")["run_id"]
        if self.power_cut and took >= UNSYNCED:
            return ""  # there must have been an fsync in between
        return f"Valkey run {old[:8]} is now {new[:8]}" if new != old else ""


class ServerRestartEverysec(ServerRestart):
    slug = "server-restart-everysec"
    persistence = "everysec"
    power_cut = True
    party = 4  # all must be inside before the next fsync


class ServerRestartAlways(ServerRestart):
    slug = "server-restart-always"
    persistence = "always"


@contextmanager
def pair(persistence: Persistence) -> Iterator[Valkey]:
    """Yield a Valkey that has a replica."""
    with (
        Valkey(port=0, persistence=persistence) as server,
        Valkey(config={"replicaof": ("127.0.0.1", server.port)}) as replica,
    ):
        until = time.monotonic() + 10
        while replica.info("replication")["master_link_status"] != "up" and time.monotonic() < until:
            time.sleep(0.02)
        yield server


def _log(server: Valkey) -> Path:
    """Return the file to which the server appends."""
    return max(Path(server.data).glob("appendonlydir/*.incr.aof"), key=lambda path: path.stat().st_mtime)


def _size(server: Valkey) -> int:
    return _log(server).stat().st_size if server.config["appendonly"] == "yes" else 0
