"""What the strategies on SQL share: their database alias, and the hazards that a database's own lock survives."""

from __future__ import annotations

from ledger.models import Book
from ledger.stores.sql import SqlStore
from ledger.strategies.base import Strategy
from locks.hazards import Hazard

#: The lock and the balance live and die together: nothing that happens to a client, to Redis or to a clock
#: comes between them. A replica that lags is not asked; a deadlock rolls one side back.
DATABASE_HAZARDS = frozenset(Hazard) - {Hazard.REPLICA_LAG}


class SqlStrategy(Strategy):
    """A strategy whose accounts are rows."""

    store: SqlStore

    def __init__(self, book: Book) -> None:
        super().__init__(book)
        self.db = self.store.db
