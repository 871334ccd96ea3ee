"""Free loopback ports for the servers that cannot live on unix sockets alone."""

from __future__ import annotations

import random
import socket
from collections import deque

# Below the range from which the kernel takes the ports of outgoing connections (32768 and up on Linux): a
# server that is down for a restart would otherwise find its port in use by some client.
RANGE = range(20000, 32000)
#: the latest ports of this process: whoever was given one may not have taken it yet
_handed_out: deque[int] = deque(maxlen=1000)


def free_port() -> int:
    """A loopback port that was free a moment ago, and that this process has not given away lately. Raises OSError if a
    hundred tries found none."""
    for _ in range(100):
        port = random.choice(RANGE)  # noqa: S311  nothing secret about it
        if port in _handed_out:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _handed_out.append(port)
            return port
    raise OSError(f"no free port between {RANGE.start} and {RANGE.stop}")
