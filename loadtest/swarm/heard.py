"""`python -m loadtest.swarm.heard http://master:8089`: does Locust's master hear the worker of this host?

The health check of a `locust-worker` container, whose worker listens on no port. Exit code 0: it does. 1: it does not,
or the master does not answer.
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any
from urllib.request import urlopen

PATIENCE = 2  # seconds


def heard(workers: list[dict[str, Any]], host: str) -> bool:
    """Locust names a worker `host_` and a random number, and calls one that it hears no more `missing`."""
    return any(each["id"].startswith(f"{host}_") and each["state"] != "missing" for each in workers)


def main(master: str) -> int:
    try:
        with urlopen(f"{master}/stats/requests", timeout=PATIENCE) as answer:  # noqa: S310  (the caller's own address)
            workers = json.load(answer)["workers"]
    except OSError as error:
        print(f"{master}: {error}")
        return 1
    if heard(workers, socket.gethostname()):
        return 0
    print(f"{master} hears no worker of {socket.gethostname()}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
