"""Which database a model may be migrated to: only the ledger's own tables are also kept on MariaDB."""

from __future__ import annotations

from typing import Any


class LedgerRouter:
    """Everything lives on `default`; on `mariadb` only the app `ledger`."""

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return app_label == "ledger" if db == "mariadb" else None
