"""Ctrl-C in the middle of a search: it ends at its next decision, says what it has seen, and leaves nothing behind.

The second Ctrl-C raises KeyboardInterrupt wherever the main thread stands.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = "it was interrupted by Ctrl-C"
TO_ITS_END = "let it run to its end, or set smaller bounds"


class Interrupt:
    """`asked`: the search has not heard of it yet. `came`: since `interruptible` was entered."""

    asked = came = False

    @classmethod
    def heard(cls) -> bool:
        """True once for each time."""
        asked, cls.asked = cls.asked, False
        return asked


@contextmanager
def interruptible() -> Iterator[None]:
    """In another thread than the main one, or where the program has a handler of its own, nothing changes."""
    Interrupt.asked = Interrupt.came = False
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def came(*_: object) -> None:
        if Interrupt.came:
            raise KeyboardInterrupt
        Interrupt.asked = Interrupt.came = True

    signal.signal(signal.SIGINT, came)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
