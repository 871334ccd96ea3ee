"""The process that owns the embedded servers of a checkout: `python -m loadtest.servers.keeper`.

    user     flock(users.lock, shared) · order postgres, valkey ············· lock gone (left, killed, crashed)
    keeper     start them, write servers.json · look every 0.2 s ············ flock(users.lock, exclusive)
                                                one was killed: start it again   stop them, remove servers.json

embedded.py starts it. The keeper ends the servers when no process holds `users.lock` and they are not pinned (`servers
up`). The kernel drops the lock of a user that dies, however it dies, so no count can be wrong. The servers are the
keeper's children, and they end when the keeper itself is killed (reaper.py). While it stops them it holds the lock
exclusively: a newcomer waits, and then starts fresh servers.
"""

import fcntl
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ledger.addresses import birth
from lost_update_lab.embedded import mariadb
from lost_update_lab.embedded.base import EmbeddedServer
from lost_update_lab.embedded.postgres import Postgres
from lost_update_lab.embedded.reaper import end
from lost_update_lab.embedded.valkey import Valkey

from . import zookeeper
from .lab import Lab
from .supervisor import Supervisor

LOOK_EVERY = 0.2  # seconds
LARGEST_LOG = 10_000_000  # bytes. A larger log is deleted when its server starts


def _valkey(lab: Path) -> list[EmbeddedServer]:
    """Return Valkey with an append-only file and a replica, without which the locks `durable` and `replicated` fail."""
    primary = Valkey(lab / "valkey", port=0, persistence="everysec")
    return [primary, Valkey(lab / "valkey-replica", config={"replicaof": ("127.0.0.1", primary.port)})]


#: name of an order → (name of the address, how to make its servers)
SERVERS: dict[str, tuple[str, Callable[[Path], list[EmbeddedServer]]]] = {
    "postgres": ("DATABASE_URL", lambda lab: [Postgres(lab / "postgres")]),
    "valkey": ("REDIS_URL", _valkey),
    "valkey-nodes": ("REDIS_NODES", lambda lab: [Valkey(lab / f"valkey-node-{n}") for n in (1, 2, 3)]),
    "mariadb": ("MARIADB_URL", lambda lab: [mariadb.MariaDB(lab / "mariadb")]),
    "zookeeper": ("ZOOKEEPER_HOSTS", lambda lab: [zookeeper.ZooKeeper(lab / "zookeeper")]),
}
#: name of an order → a function that says what to install, or None
UNAVAILABLE: dict[str, Callable[[], str | None]] = {
    "mariadb": mariadb.available,
    "zookeeper": zookeeper.available,
}


class Keeper:
    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.running: dict[str, list[EmbeddedServer]] = {}
        self.stopping = threading.Event()
        self.supervisor = Supervisor(lambda told: print(told, flush=True))

    def run(self) -> None:
        self._end_orphans()
        with self.lab.users.open("a") as users:
            while not self.stopping.is_set():
                for name in SERVERS:
                    if self.stopping.is_set():
                        break
                    if name not in self.running and self.lab.order(name).exists():
                        self._start(name)
                if self.supervisor.look():
                    self._write_state()
                if not self.lab.pin.exists() and _lock(users):
                    break
                self.stopping.wait(LOOK_EVERY)
            self._stop()

    def _start(self, name: str) -> None:
        servers: list[EmbeddedServer] = []
        try:
            servers = SERVERS[name][1](self.lab.folder)
            for server in servers:
                with suppress(FileNotFoundError):
                    if server.log.stat().st_size > LARGEST_LOG:
                        server.log.unlink()
                server.start()
        except Exception as error:  # noqa: BLE001  the user is told, and the other servers run on
            for server in servers:
                server.close()
            self.lab.refuse(name, f"{error}")
            return
        self.running[name] = servers
        self.supervisor.watch(servers)
        self._write_state()

    def _write_state(self) -> None:
        state: dict[str, Any] = {
            SERVERS[name][0]: ",".join(server.url for server in servers if not server.follows)
            for name, servers in self.running.items()
        }
        everyone = [server for servers in self.running.values() for server in servers if server.running]
        state["keeper"] = os.getpid()
        state["keeper_born"] = birth(os.getpid())
        state["processes"] = {s.data.name: [s.pid, birth(s.pid)] for s in everyone}
        state["logs"] = {s.data.name: str(s.log) for s in everyone}
        state["folders"] = [str(s.run) for s in everyone]
        self.lab.write_state(state)

    def _stop(self) -> None:
        self.lab.state.unlink(
            missing_ok=True
        )  # first, so that no client connects to a server that is about to end
        self.lab.clear_orders()
        for servers in reversed(self.running.values()):
            for server in servers:
                with suppress(Exception):  # it had to be killed, and the others must end too
                    server.close()

    def _end_orphans(self) -> None:
        """End the servers whose keeper and reaper were both killed. This keeper holds the lock, so no keeper owns
        them."""
        state = self.lab.read_state()
        for pid, born in state.get("processes", {}).values():
            if born and born == birth(pid):
                end({pid: signal.SIGTERM})
        for folder in state.get("folders", []):
            shutil.rmtree(folder, ignore_errors=True)
        self.lab.state.unlink(missing_ok=True)


def _lock(file: Any, seconds: float = 0) -> bool:
    """Take the lock exclusively. A process that asks whether it is free may hold it for a moment, so try again."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def main() -> int:
    lab = Lab()
    keeper = Keeper(lab)
    for signum in (signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: keeper.stopping.set())
    with lab.keeper.open("a") as lock:
        if not _lock(lock, seconds=1):
            return 0  # another keeper was faster
        lab.sign(lock)
        keeper.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
