"""Adapts another library's lock to our contract.

parent: acquire → a7f3 (in the library's object), fork
child:  .held → False, release → LockNotHeld       a library object of its own; the parent's lock stays
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from locks.base import Lock


class Adapted(Lock):
    """A forked child inherits the library's object, and with it the parent's token. So the child makes a new object."""

    def _adapt(self, make: Callable[[], Any]) -> None:
        """`make` returns the library's lock."""
        self._make = make
        self._adapt_again()

    def _adapt_again(self) -> None:
        self._by_process = {os.getpid(): self._make()}

    @property
    def _lock(self) -> Any:
        """The library's lock of this process."""
        process = os.getpid()
        if process not in self._by_process:
            return self._by_process.setdefault(process, self._make())
        return self._by_process[process]
