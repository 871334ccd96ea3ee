"""On PostgreSQL keys are ordered by their bytes, as in Python, whatever the database's collation.

An import asks whether the book has any key between the smallest and the largest key of its chunk, and Python finds these
two. Comparing bytes is also the cheapest comparison, in an index that every posting uses.
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
