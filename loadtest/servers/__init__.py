"""Real servers as child processes, which end with their parent: PostgreSQL, Valkey, MariaDB, ZooKeeper."""

from lost_update_lab.embedded.base import Server, ServerError, Unavailable
from lost_update_lab.embedded.mariadb import MariaDB
from lost_update_lab.embedded.postgres import Postgres
from lost_update_lab.embedded.replication import ReplicaSet, Sentinel
from lost_update_lab.embedded.valkey import Valkey

from .zookeeper import ZooKeeper

__all__ = [
    "MariaDB",
    "Postgres",
    "ReplicaSet",
    "Sentinel",
    "Server",
    "ServerError",
    "Unavailable",
    "Valkey",
    "ZooKeeper",
]
