"""What a trial needs and this machine has not: shown as `not-run` with its reason, never silently skipped."""

from __future__ import annotations

import inspect

from django.conf import settings

from ledger.stores import STORES
from ledger.strategies import Locked, find

#: what a lock's signature may name → (is it there?, why not, remedy)
SERVERS = {
    "zookeeper": (
        lambda: bool(settings.ZOOKEEPER_HOSTS),
        "no ZooKeeper: install it (Debian: zookeeper)",
        "apt-get install zookeeper, then `python manage.py servers up`; or set ZOOKEEPER_HOSTS",
    ),
}
MARIADB = (
    "no MariaDB: install it (Debian: mariadb-server)",
    "apt-get install mariadb-server, then `python manage.py servers up`; or set MARIADB_URL",
)


def missing(strategy: str, store: str) -> tuple[str, str] | None:
    """Return (reason, remedy) when `strategy` cannot be tried on `store` here, else None.

    Raises LookupError and ValueError for names that nobody knows.
    """
    found = find(strategy)
    if store not in STORES:
        raise ValueError(f"no store {store!r}. Known: {', '.join(STORES)}")
    if store not in found.stores:
        return f"it keeps its accounts only on {', '.join(found.stores)}, not on {store}", ""
    if store == "mariadb" and "mariadb" not in settings.DATABASES:
        return MARIADB
    for name in _asks_for(found):
        if name in SERVERS:
            there, reason, remedy = SERVERS[name]
            if not there():
                return reason, remedy
    return None


def _asks_for(strategy: type) -> tuple[str, ...]:
    """The resources that a lock's signature names; `**keywords` takes what there is."""
    if not issubclass(strategy, Locked):
        return ()
    return tuple(inspect.signature(strategy.factory).parameters)
