"""Real servers as child processes: PostgreSQL, Valkey, MariaDB, ZooKeeper. None outlives its parent."""

from .base import Server, ServerError, Unavailable
from .postgres import Postgres
from .valkey import Valkey

__all__ = ["Postgres", "Server", "ServerError", "Unavailable", "Valkey"]
