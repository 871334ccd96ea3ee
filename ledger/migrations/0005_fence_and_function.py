"""What two strategies need in the database: the account's newest fencing number, and a function."""

from pathlib import Path

from django.db import migrations, models

FUNCTION = Path(__file__).with_name("ledger_post.sql")
DROP = "DROP FUNCTION ledger_post(uuid, text[], bigint[], uuid[], text, text, text)"


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            FUNCTION.read_text(encoding="utf-8"), params=None
        )  # None: a % is not a placeholder


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(DROP)


class Migration(migrations.Migration):
    dependencies = [("ledger", "0004_posted_lines_are_final")]
    operations = [
        migrations.AddField(
            model_name="account",
            name="fence",
            field=models.BigIntegerField(
                default=0, editable=False, help_text="the newest fencing number seen"
            ),
        ),
        migrations.RunPython(create, drop),
    ]
