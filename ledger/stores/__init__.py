"""The stores of balances: PostgreSQL, MariaDB, Redis. Start at `store_of(book)`."""

from __future__ import annotations

from ledger.models import Book
from ledger.stores.base import KeyTaken, Store
from ledger.stores.redis import RedisStore
from ledger.stores.sql import SqlStore

__all__ = ["STORES", "KeyTaken", "Store", "store_of"]

#: The only list of the stores.
STORES: dict[str, type[Store]] = {"postgres": SqlStore, "mariadb": SqlStore, "redis": RedisStore}


def store_of(book: Book) -> Store:
    """Return the store that keeps the book's accounts. Raises NotConfigured."""
    return STORES[book.store](book)
