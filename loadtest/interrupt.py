"""SIGTERM ends a command as Ctrl-C does: what it started is ended on the way out."""

from __future__ import annotations

import signal
from typing import Any


def end_as_ctrl_c() -> None:
    """From now on SIGTERM raises KeyboardInterrupt in the main thread. Call it from there."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
