"""Two deposits under redlock-ng's lock, with one master."""

from __future__ import annotations

from typing import Any

from museum.packages.bank import deposits
from museum.packages.package import Package


def lock(redis: Any) -> Any:
    from redlock import RedLock

    return RedLock("account", connection_details=[redis], ttl=30_000)


PACKAGE = Package(pins=["redlock-ng==2.0.4"], trials=lambda: deposits(lock))
