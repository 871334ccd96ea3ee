"""Real servers as child processes: PostgreSQL, Valkey, MariaDB, ZooKeeper. None outlives its parent."""

from .base import Server, ServerError, Unavailable
from .mariadb import MariaDB
from .postgres import Postgres
from .replication import ReplicaSet, Sentinel
from .valkey import Valkey
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
