"""On PostgreSQL keys are ordered by their bytes, whatever the database's language: as Python orders them.

An import asks whether the book has any key between the least and the greatest of its chunk, and finds these two by
itself. And a comparison of bytes is the cheapest there is, in an index that every posting goes through.
"""

from django.db import migrations


def collate(collation):
    def run(apps, schema_editor):
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(
                f'ALTER TABLE ledger_entry ALTER COLUMN key TYPE varchar(100) COLLATE "{collation}"'
            )

    return run


class Migration(migrations.Migration):
    dependencies = [("ledger", "0014_lines_in_doubt")]
    operations = [migrations.RunPython(collate("C"), collate("default"))]
