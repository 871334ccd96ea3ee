"""A key is one posting in its book, whichever accounts it names: an entry's place in its posting is unique.

Until now the key was unique per account. Two simultaneous requests with one key and different accounts were both
applied. A request that was sent twice and went to two rows of a split account was applied twice.
"""

from importlib import import_module

from django.db import migrations, models

guard = import_module("ledger.migrations.0002_entries_are_append_only")
function = import_module("ledger.migrations.0005_fence_and_function")

#: entries of postings that have several, in the order in which they were written; the trigger knows no exception
NUMBERED = """
SELECT id, row_number() OVER (PARTITION BY book_id, {key} ORDER BY seq, id) - 1 AS place FROM ledger_entry
"""
POSTGRES = f"""
ALTER TABLE ledger_entry DISABLE TRIGGER entry_append_only;
UPDATE ledger_entry SET place = numbered.place FROM ({NUMBERED.format(key="key")}) AS numbered
    WHERE numbered.id = ledger_entry.id AND numbered.place > 0;
ALTER TABLE ledger_entry ENABLE TRIGGER entry_append_only;
"""  # noqa: S608  (our own column names)
MARIADB = (
    "DROP TRIGGER IF EXISTS entry_no_update",
    f"UPDATE ledger_entry JOIN ({NUMBERED.format(key='`key`')}) AS numbered ON numbered.id = ledger_entry.id"  # noqa: S608
    " SET ledger_entry.place = numbered.place WHERE numbered.place > 0",
    guard.MARIADB[0],
)


def number(apps, schema_editor):
    if schema_editor.connection.vendor == "mysql":
        for statement in MARIADB:
            schema_editor.execute(statement)
    else:
        schema_editor.execute(POSTGRES, params=None)


def forget(apps, schema_editor):
    """Backwards: the function of before names no place."""
    if schema_editor.connection.vendor == "postgresql":
        text = function.FUNCTION.read_text(encoding="utf-8")
        for named in ("place, ", "i - 1, "):
            assert text.count(named) == 1
            text = text.replace(named, "")
        schema_editor.execute(text, params=None)


class Migration(migrations.Migration):
    dependencies = [("ledger", "0012_exact_keys_on_mariadb")]
    operations = [
        migrations.AddField(
            "entry",
            "place",
            models.PositiveIntegerField(
                db_default=0, editable=False, help_text="which of its posting's entries: 0, 1, …"
            ),
        ),
        # atomic=False: MariaDB allows no DDL in a transaction; on PostgreSQL the whole migration is one
        migrations.RunPython(number, migrations.RunPython.noop, atomic=False),
        # the new constraint first: MariaDB's foreign key to the book needs an index that begins with the book
        migrations.AddConstraint(
            "entry",
            models.UniqueConstraint(fields=["book", "key", "place"], name="a_key_once_in_a_book"),
        ),
        migrations.RemoveConstraint("entry", "a_key_once_for_each_account"),
        migrations.RunPython(function.create, forget),
    ]
