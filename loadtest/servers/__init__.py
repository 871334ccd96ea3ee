"""Real servers as child processes: PostgreSQL, Valkey, MariaDB, ZooKeeper. None outlives its parent."""

from .base import Server, ServerError, Unavailable
from .postgres import Postgres
from .replication import ReplicaSet, Sentinel
from .valkey import Valkey

__all__ = ["Postgres", "ReplicaSet", "Sentinel", "Server", "ServerError", "Unavailable", "Valkey"]
