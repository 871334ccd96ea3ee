"""Two deposits under pottery's Redlock, with one master."""

from __future__ import annotations

from typing import Any

from museum.packages.bank import deposits
from museum.packages.package import Package


def lock(redis: Any) -> Any:
    from pottery import Redlock

    return Redlock(key="account", masters={redis}, auto_release_time=30)


PACKAGE = Package(pins=["pottery==3.0.1"], trials=lambda: deposits(lock))
