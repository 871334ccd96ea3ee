"""The contents of a replica that has fallen behind, kept as DUMP returns them: a real failover would cost a second."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

#: written and deleted by the explorer: WAIT counts what its own session has written last
_OWN = "explorer:confirmed"


class Replica:
    """`ask`: one round trip to the primary."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self.ask = ask
        #: process ids of real replicas, which answer WAIT
        self.processes: list[int] = []
        #: the writes that the replica did not get
        self.lost: list[str] = []
        self._kept: tuple[list[tuple[bytes, bytes]], dict[str, int], bytes] | None = None

    @property
    def lags(self) -> bool:
        return self._kept is not None

    def begin(self) -> None:
        self._kept, self.lost = None, []
        self._signal(signal.SIGCONT)

    def lag(self, keys: list[bytes], leases: Mapping[str, int], contents: bytes) -> None:
        """Keep what is there now. Real replicas are stopped as well, once they have confirmed what they got. They
        confirm by themselves each second, and a WAIT for what was written before must not be answered by luck."""
        if self.processes:
            for command in ("SET", _OWN, ""), ("DEL", _OWN), ("WAIT", len(self.processes), 0):
                self.ask(*command)
        self.lost = []
        self._kept = [(key, self.ask("DUMP", key)) for key in keys], dict(leases), contents
        self._signal(signal.SIGSTOP)

    def take_over(self, now: int) -> tuple[dict[str, int], bytes]:
        """What the replica had is now what is there. Returns the leases that stand, and the contents."""
        assert self._kept is not None
        (had, leases, contents), self._kept = self._kept, None
        self._signal(signal.SIGCONT)  # the replicas of the new primary confirm its writes
        self.ask("FLUSHALL")
        for key, value in had:
            self.ask("RESTORE", key, 0, value)
        standing = {key: end for key, end in leases.items() if end > now}
        for name in leases.keys() - standing.keys():
            self.ask("DEL", name)
        return standing, contents

    def hidden(self, now: int) -> bytes:
        """What belongs to the state, although no worker sees it yet."""
        if self._kept is None:
            return b""
        _, leases, contents = self._kept
        return contents + repr(sorted((key, end - now) for key, end in leases.items())).encode()

    def _signal(self, number: signal.Signals) -> None:
        for process in self.processes:
            os.kill(process, number)
