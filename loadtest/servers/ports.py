"""Free loopback ports for the servers that cannot live on unix sockets alone."""

import random
import socket

# Below the range from which the kernel takes the ports of outgoing connections (32768 and up on Linux): a
# server that is down for a restart would otherwise find its port in use by some client.
RANGE = range(20000, 32000)


def free_port() -> int:
    """A loopback port that was free a moment ago. Raises OSError if a hundred tries found none."""
    for _ in range(100):
        port = random.choice(RANGE)  # noqa: S311  nothing secret about it
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port between {RANGE.start} and {RANGE.stop}")
