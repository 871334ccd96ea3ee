"""Where a balance lives: PostgreSQL, MariaDB, Redis. `store_of(book)` is the way in."""

from __future__ import annotations

from ledger.models import Book
from ledger.stores.base import KeyTaken, Store
from ledger.stores.redis import RedisStore
from ledger.stores.sql import SqlStore

__all__ = ["STORES", "KeyTaken", "Store", "store_of"]

#: The only list.
STORES: dict[str, type[Store]] = {"postgres": SqlStore, "mariadb": SqlStore, "redis": RedisStore}


def store_of(book: Book) -> Store:
    """Return the store that keeps the book's accounts. Raises NotConfigured."""
    return STORES[book.store](book)
