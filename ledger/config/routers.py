"""Which database a model may be migrated to: only accounts, their entries and lock tables are also on MariaDB."""

from __future__ import annotations

from typing import Any


class LedgerRouter:
    """Everything lives on `default`; on `mariadb` only books, accounts, entries and lock records."""

    def allow_migrate(
        self, db: str, app_label: str, model_name: str | None = None, **hints: Any
    ) -> bool | None:
        if db != "mariadb":
            return None
        return app_label == "ledger" and model_name in (None, "book", "account", "entry", "lockrecord")
