"""Real servers as child processes, which end with their parent: PostgreSQL, PgBouncer, Valkey, MariaDB, ZooKeeper."""

from lost_update_lab.embedded.base import EmbeddedServer, ServerError, Unavailable
from lost_update_lab.embedded.mariadb import MariaDB
from lost_update_lab.embedded.postgres import Postgres
from lost_update_lab.embedded.replication import ReplicaSet, Sentinel
from lost_update_lab.embedded.valkey import Valkey

from .pgbouncer import PgBouncer
from .zookeeper import ZooKeeper

__all__ = [
    "EmbeddedServer",
    "MariaDB",
    "PgBouncer",
    "Postgres",
    "ReplicaSet",
    "Sentinel",
    "ServerError",
    "Unavailable",
    "Valkey",
    "ZooKeeper",
]
