"""Which database a model is migrated to. MariaDB has accounts, their entries and the lock tables only."""

from __future__ import annotations

from typing import Any


class LedgerRouter:
    """`default` has everything; `mariadb` has only books, accounts, entries and lock records."""

    def allow_migrate(
        self, db: str, app_label: str, model_name: str | None = None, **hints: Any
    ) -> bool | None:
        if db != "mariadb":
            return None
        return app_label == "ledger" and model_name in (None, "book", "account", "entry", "lockrecord")
