"""Free loopback ports, for servers that need more than a unix socket."""

from __future__ import annotations

import random
import socket
from collections import deque

# Below the ports of outgoing connections (32768 and up on Linux). Otherwise a client could take the port of a server
# while that server restarts.
RANGE = range(20000, 32000)
#: the ports that this process gave away last. Some of them may not be in use yet.
_handed_out: deque[int] = deque(maxlen=1000)


def free_port() -> int:
    """Return a loopback port that was free a moment ago and that this process has not given away lately. Raises OSError
    if a hundred tries find none."""
    for _ in range(100):
        port = random.choice(RANGE)  # noqa: S311  no secret
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
