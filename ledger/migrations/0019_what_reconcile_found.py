"""What reconcile found in a book last: a list of books says it without reading their entries."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0018_ways_to_import"),
    ]

    operations = [
        migrations.CreateModel(
            name="Reconciliation",
            fields=[
                (
                    "book",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="reconciliation",
                        serialize=False,
                        to="ledger.book",
                    ),
                ),
                ("state", models.CharField(help_text="see Books.state", max_length=20)),
                ("entries", models.BigIntegerField()),
                ("expected", models.BigIntegerField(help_text="minor units")),
                ("final", models.BigIntegerField(help_text="minor units")),
                ("lost_amount", models.BigIntegerField(help_text="minor units")),
                ("at", models.DateTimeField()),
            ],
        ),
    ]
