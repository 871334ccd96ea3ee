"""The physical limit: how often two processes can hand over the turn through the server, on raw sockets.

    A: PUBLISH b →                    B: wakes; (GET, SET;) PUBLISH a →         A: wakes …

One command wakes the other process: no hand-over through this server can cost less. It involves no lock, no lease, no
number and no queue.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from loadtest.bench.children import ChildFailed, crew
from loadtest.bench.locks.contenders import command
from loadtest.bench.locks.servers import BenchServers
from loadtest.bench.measured import Row, failed, spread

TIMEOUT = 5.0


class Player:
    """One of the two processes. `section`: the GET and the SET of the locks' sections."""

    def __init__(self, path: str, mine: bytes, other: bytes) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT)
        self._socket.connect(path)
        self._rest = b""
        for words in ((b"HELLO", b"3"), (b"SUBSCRIBE", mine)):
            self._socket.sendall(command(*words)[0])
            self._socket.recv(65536)
        self._socket.settimeout(None)
        self._pass = command(b"PUBLISH", other, b"x")[0]
        self._wake = b"message"

    def wait(self) -> None:
        while self._wake not in self._rest:
            self._rest += self._socket.recv(4096)
        self._rest = b""

    def hand_over(self) -> None:
        self._socket.sendall(self._pass)

    def section(self) -> None:
        for words in ((b"GET", b"bench:limit"), (b"SET", b"bench:limit", b"1")):
            self._socket.sendall(command(*words)[0])
            self._rest = self._socket.recv(4096)
        self._rest = b""


def player(servers: BenchServers, mine: bytes, other: bytes) -> Callable[[], Callable[[Any], float]]:
    """Return the preparation of a process whose work is (begins?, turns, section?) → seconds."""

    def prepare() -> Callable[[Any], float]:
        side = Player(str(servers.plain.socket), mine, other)

        def work(order: tuple[bool, int, bool]) -> float:
            begins, turns, section = order
            started = time.perf_counter()
            if begins:
                side.hand_over()
            for turn in range(turns):
                side.wait()
                if section:
                    side.section()
                if not begins or turn < turns - 1:
                    side.hand_over()
            return time.perf_counter() - started

        return work

    return prepare


def measure(servers: BenchServers, *, turns: int, section: bool) -> float:
    """Return the hand-overs per second."""
    sides = player(servers, b"a", b"b"), player(servers, b"b", b"a")
    with crew(*sides) as (first, second):
        for side in (first, second):
            side.tell((False, 0, section))
            side.answer()  # now it has subscribed: an earlier message would be lost
        for count in (20, turns):
            second.tell((False, count, section))
            first.tell((True, count, section))
            seconds, _ = first.answer(), second.answer()
    return 2 * turns / float(seconds)


def rows(servers: BenchServers, *, turns: int, times: int) -> Iterator[Row]:
    for section in (False, True):
        name = "raw sockets, GET and SET inside" if section else "raw sockets"
        about = {"measure": "limit", "strategy": name}
        try:
            speed = [measure(servers, turns=turns, section=section) for _ in range(times)]
        except ChildFailed as error:
            yield about | failed(error)
        else:
            yield about | {"per_s": spread(speed)}
