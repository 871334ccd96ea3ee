"""On MariaDB, which ignores case and accents in text comparisons by default, keys and numbers compare exactly.

Otherwise the key INV-A1 would equal inv-a1: the second payment would get the first one's answer and never be made.
"""

from typing import Any

from django.db import migrations

COLUMNS = (("ledger_account", "number", 40), ("ledger_entry", "key", 100), ("ledger_lockrecord", "name", 250))


def collate(collation: str) -> Any:
    def run(_apps: Any, schema_editor: Any) -> None:
        if schema_editor.connection.vendor != "mysql":
            return
        for table, column, length in COLUMNS:
            schema_editor.execute(
                f"ALTER TABLE `{table}` MODIFY `{column}` varchar({length}) CHARACTER SET utf8mb4"
                f" COLLATE {collation} NOT NULL"
            )

    return run


class Migration(migrations.Migration):
    atomic = False  # MariaDB cannot roll an ALTER TABLE back
    dependencies = [("ledger", "0011_stopped_imports")]
    operations = [migrations.RunPython(collate("utf8mb4_nopad_bin"), collate("utf8mb4_general_ci"))]
