"""What a case needs and this machine lacks: reported as `not-run` with a reason, never silently skipped."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings

from ledger.stores import STORES
from ledger.strategies import find
from loadtest.servers import zookeeper
from loadtest.trials.dependencies import asked
from lost_update_lab.embedded import mariadb

#: server → (its name, is it there?, why it cannot be started here, the setting for a real one's address)
SERVERS: dict[str, tuple[str, Callable[[], bool], Callable[[], str | None], str]] = {
    "zookeeper": (
        "ZooKeeper",
        lambda: bool(settings.ZOOKEEPER_HOSTS),
        zookeeper.available,
        "ZOOKEEPER_HOSTS",
    ),
    "mariadb": ("MariaDB", lambda: "mariadb" in settings.DATABASES, mariadb.available, "MARIADB_URL"),
}
START = "`python manage.py servers up --all`"


def missing(strategy: str, store: str, *, private: bool = False) -> tuple[str, str] | None:
    """Return (reason, remedy) if `strategy` cannot be tried on `store` here, else None. `private`: the run starts its
    own servers and uses no others, so a server's address would not help.

    Raises LookupError or ValueError for unknown names.
    """
    found = find(strategy)
    if store not in STORES:
        raise ValueError(f"no store {store!r}. Known: {', '.join(STORES)}")
    if store not in found.stores:
        return f"it keeps its accounts only on {', '.join(found.stores)}, not on {store}", ""
    for name in (store, *asked(strategy)):
        if name in SERVERS and (lacking := absent(name, private=private)):
            return lacking
    return None


def absent(server: str, *, private: bool = False) -> tuple[str, str] | None:
    """Return (reason, remedy) if there is no such server, else None."""
    name, there, lacks, address = SERVERS[server]
    if there():
        return None
    if install := lacks():
        elsewhere = "" if private else f", then {START}; or set {address}"
        return f"no {name}: {install}", f"apt-get {install}{elsewhere}"
    if private:
        return f"no {name}: it is installed, but was not started for this run", "run it again"
    return f"no {name}: it is installed, but is not running", f"{START}; or set {address}"
