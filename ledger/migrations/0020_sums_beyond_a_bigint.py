"""What reconcile found: a sum of BIGINTs may be none, and reconcile failed for such a book."""

from django.db import migrations, models


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
    ]
