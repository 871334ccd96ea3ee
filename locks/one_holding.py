"""What the object of a single-holder lock remembers: its token, and when its lease ends by this process's clock.

parent: acquire → a7f3, fork
child:  .held → False, release → LockNotHeld, without asking a server       the parent's lock stays
"""

from __future__ import annotations

import os
import time

from locks.base import Lock
from locks.errors import LockNotHeld


class OneHolding(Lock):
    """A forked child inherits the object but holds nothing: the token in it is its parent's."""

    _valid_until = 0.0  # on `time.monotonic()`'s clock
    _process = 0  # the process to which it was granted

    def _granted(self, token: bytes, until: float) -> None:
        self.token, self._valid_until, self._process = token, until, os.getpid()

    def _mine(self, verb: str) -> bytes:
        if self.token is None or self._process != os.getpid():
            raise LockNotHeld(f"{self.name}: {verb} without holding it")
        return self.token

    @property
    def held(self) -> bool:
        """Also False once the lease is over by this process's clock, and in a forked child."""

        return (
            self.token is not None and time.monotonic() < self._valid_until and self._process == os.getpid()
        )
