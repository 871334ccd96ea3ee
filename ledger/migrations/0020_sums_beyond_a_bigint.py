"""What reconcile found: a sum of BIGINTs may be none, and reconcile failed for such a book."""

from typing import Any

from django.db import migrations, models

MOST = 2**63 - 1


def forget(apps: Any, editor: Any) -> None:
    """On the way back: what no BIGINT can hold is found again by the next reconcile."""
    found = apps.get_model("ledger", "Reconciliation").objects
    for name in ("expected", "final", "lost_amount"):
        found.exclude(**{f"{name}__range": (-MOST, MOST)}).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0019_what_reconcile_found"),
    ]

    operations = [
        migrations.AlterField(
            model_name="reconciliation",
            name=name,
            field=models.DecimalField(decimal_places=0, help_text="minor units", max_digits=30),
        )
        for name in ("expected", "final", "lost_amount")
    ] + [migrations.RunPython(migrations.RunPython.noop, forget)]
