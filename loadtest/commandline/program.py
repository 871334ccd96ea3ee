"""What `make` runs as a program: how it ends, and with which exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any

from loadtest.servers import ServerError
from loadtest.servers.embedded import what_is_left


def run(body: Callable[[], int]) -> int:
    """Return the exit code of `body`; 2, with what to do, when a server fails; 130 after Ctrl-C or SIGTERM.

    What `body` started is ended on the way out. Call it from the main thread.
    """
    end_as_ctrl_c()
    try:
        return body()
    except ServerError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"Stopped. {what_is_left()}", file=sys.stderr)
        return 130


def end_as_ctrl_c() -> None:
    """From now on SIGINT and SIGTERM raise KeyboardInterrupt in the main thread. Call it from there. A program that a
    script starts with `&` ignores SIGINT otherwise: the shell has it so, and Python leaves it so."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
