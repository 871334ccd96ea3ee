"""Entries cannot be updated or deleted, not even with plain SQL. On PostgreSQL they cannot be truncated either. MariaDB's
TRUNCATE fires no trigger."""

from django.db import migrations

FUNCTION = """
CREATE FUNCTION ledger_entry_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'entries are append-only: % refused', TG_OP USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER entry_append_only BEFORE UPDATE OR DELETE ON ledger_entry
    FOR EACH ROW EXECUTE FUNCTION ledger_entry_append_only();
CREATE TRIGGER entry_no_truncate BEFORE TRUNCATE ON ledger_entry
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_entry_append_only();
"""
UNDO = """
DROP TRIGGER entry_no_truncate ON ledger_entry;
DROP TRIGGER entry_append_only ON ledger_entry;
DROP FUNCTION ledger_entry_append_only();
"""
MARIADB = [
    f"CREATE TRIGGER entry_no_{verb.lower()} BEFORE {verb} ON ledger_entry FOR EACH ROW "
    f"SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'entries are append-only: {verb} refused'"
    for verb in ("UPDATE", "DELETE")
]


def forwards(apps, schema_editor):
    if schema_editor.connection.vendor == "mysql":
        for statement in MARIADB:
            schema_editor.execute(statement)
    else:
        schema_editor.execute(FUNCTION, params=None)  # None: its % is not a placeholder


def backwards(apps, schema_editor):
    if schema_editor.connection.vendor == "mysql":
        for verb in ("update", "delete"):
            schema_editor.execute(f"DROP TRIGGER entry_no_{verb}")
    else:
        schema_editor.execute(UNDO, params=None)


class Migration(migrations.Migration):
    # MariaDB allows no DDL in a transaction. PostgreSQL runs the statements of one string in one all the same.
    atomic = False
    dependencies = [("ledger", "0001_initial")]
    operations = [migrations.RunPython(forwards, backwards)]
