"""On PostgreSQL the writing statement and a trigger guarantee an entry's account, not foreign keys.

Why: docs/decisions/0011-entries-without-foreign-keys.md. MariaDB keeps its foreign keys.
"""

import django.db.models.deletion
from django.db import migrations, models

DROP = """
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT conname FROM pg_constraint WHERE conrelid = 'ledger_entry'::regclass AND contype = 'f' LOOP
        EXECUTE format('ALTER TABLE ledger_entry DROP CONSTRAINT %I', name);
    END LOOP;
END $$;
CREATE FUNCTION ledger_account_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        IF EXISTS (SELECT FROM ledger_entry) THEN
            RAISE EXCEPTION 'accounts with entries stay: TRUNCATE refused' USING ERRCODE = 'foreign_key_violation';
        END IF;
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT FROM ledger_entry WHERE account_id = OLD.id) THEN
        RAISE EXCEPTION 'account % has entries: % refused', OLD.number, TG_OP USING ERRCODE = 'foreign_key_violation';
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER account_stays BEFORE DELETE ON ledger_account
    FOR EACH ROW EXECUTE FUNCTION ledger_account_stays();
-- AFTER, not BEFORE: with any BEFORE UPDATE row trigger on the table, PostgreSQL 18's RETURNING old.* tells the
-- version that the statement had seen before it waited for the row, and atomic-update's entries lose their parent.
CREATE TRIGGER account_keeps_its_id AFTER UPDATE OF id, book_id ON ledger_account
    FOR EACH ROW WHEN (OLD.id <> NEW.id OR OLD.book_id <> NEW.book_id) EXECUTE FUNCTION ledger_account_stays();
CREATE TRIGGER accounts_stay BEFORE TRUNCATE ON ledger_account
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_account_stays();
"""
UNDO = """
DROP TRIGGER accounts_stay ON ledger_account;
DROP TRIGGER account_keeps_its_id ON ledger_account;
DROP TRIGGER account_stays ON ledger_account;
DROP FUNCTION ledger_account_stays();
ALTER TABLE ledger_entry
    ADD CONSTRAINT ledger_entry_account_id_fk FOREIGN KEY (account_id) REFERENCES ledger_account
        DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT ledger_entry_book_id_fk FOREIGN KEY (book_id) REFERENCES ledger_book
        DEFERRABLE INITIALLY DEFERRED;
"""


def only_on_postgresql(sql):
    def run(apps, schema_editor):
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(sql, params=None)  # None: a % is not a placeholder

    return run


class Migration(migrations.Migration):
    dependencies = [("ledger", "0007_lock_records")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(only_on_postgresql(DROP), only_on_postgresql(UNDO))],
            state_operations=[
                migrations.AlterField(
                    "entry",
                    "book",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="ledger.book",
                    ),
                ),
                migrations.AlterField(
                    "entry",
                    "account",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="ledger.account",
                    ),
                ),
            ],
        )
    ]
