"""Runs in an environment of its own, without this project: `python foreign_peer.py PEER SOCKET`.

For each line, a number of seconds, it acquires and releases for that long, and prints the cycles per second.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def pottery(socket: str) -> Any:
    from pottery import Redlock
    from redis import Redis

    lock = Redlock(key="bench:pottery", masters={Redis(unix_socket_path=socket)}, auto_release_time=10)
    return lock.acquire, lock.release


def redlock_ng(socket: str) -> Any:
    from redlock import Redlock

    manager = Redlock([f"unix://{socket}"])
    taken: list[Any] = []
    return (
        lambda: taken.append(manager.acquire("bench:redlock-ng", 10_000)),
        lambda: manager.release(taken.pop()),
    )


def main() -> None:
    acquire, release = {"pottery": pottery, "redlock-ng": redlock_ng}[sys.argv[1]](sys.argv[2])
    for line in sys.stdin:
        seconds, cycles = json.loads(line), 0
        started = time.perf_counter()
        while (passed := time.perf_counter() - started) < seconds:
            acquire()
            release()
            cycles += 1
        print(json.dumps(cycles / passed), flush=True)


if __name__ == "__main__":
    main()
