"""server-restart: SIGKILL of Valkey while one worker is inside, and a new start: what does the server still know?

    server-restart            no persistence: it forgets everything
    server-restart-everysec   append-only file, fsync once a second. A killed process loses nothing, the kernel has
                              the data; so this is a power cut: what was written after the last fsync is cut off
    server-restart-always     append-only file, fsync before each answer

Proof        another run id of the server; the lock's keys before and after.
Cannot touch a strategy that asks no Valkey; `durable` grants nothing without an append-only file.
Cleans up    the server is the cell's own, and ends with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from loadtest.faults import touch
from loadtest.faults.base import Adversary
from loadtest.faults.scene import EASY_LEASE
from loadtest.servers import Valkey
from loadtest.servers.valkey import Persistence
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene import Scene
    from loadtest.faults.site import Site


UNSYNCED = 2.0  # seconds that `everysec` may lose: an fsync that is late is waited for up to 2


class ServerRestart(Adversary):
    slug = "server-restart"
    word = Hazard.SERVER_RESTART
    own_valkey = True
    lease = EASY_LEASE
    persistence: ClassVar[Persistence] = None
    power_cut: ClassVar[bool] = False

    def not_applicable(self, strategy: str) -> str | None:
        if strategy == "durable" and self.persistence is None:
            return "it grants nothing on a server without an append-only file"
        if strategy == "durable" and self.power_cut:
            return "it waits for the fsync (WAITAOF): nothing that it was granted can be cut off"
        return touch.no_valkey(strategy)

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        with Valkey(port=0, persistence=self.persistence) as server:
            yield shared.with_valkey(server)

    def strike(self, scene: Scene) -> None:
        server = scene.site.valkey
        mark, at = _size(server), time.monotonic()
        if self.power_cut and scene.book.store == "redis":  # acknowledged, and not yet on the disk
            scene.wait(scene.rush(1), 5)
        if not (victim := scene.victim()):
            return
        before, old = scene.held(victim), server.info("server")["run_id"]
        server.kill()
        if self.power_cut:
            if time.monotonic() - at < UNSYNCED:
                with _log(server).open("r+b") as log:
                    log.truncate(mark)
            else:
                scene.note("too much time passed: an fsync must have come between")
                old = ""
        server.start()
        new = server.info("server")["run_id"]
        if old and new != old:
            scene.prove(
                f"Valkey run {old[:8]} is now {new[:8]}; before: {before}; after: {scene.held(victim)}"
            )
        scene.wait(scene.rush(), 0.3)
        scene.go_on(victim)


class ServerRestartEverysec(ServerRestart):
    slug = "server-restart-everysec"
    persistence = "everysec"
    power_cut = True


class ServerRestartAlways(ServerRestart):
    slug = "server-restart-always"
    persistence = "always"


def _log(server: Valkey) -> Path:
    """The file to which it appends."""
    return max(Path(server.data).glob("appendonlydir/*.incr.aof"), key=lambda path: path.stat().st_mtime)


def _size(server: Valkey) -> int:
    return _log(server).stat().st_size if server.config["appendonly"] == "yes" else 0
