"""A posted line is final, and only a line whose entry is in the books can become posted, even with plain SQL.

Accounts on a server other than PostgreSQL keep their entries there. For these only the first half holds.
"""

from django.db import migrations

FUNCTION = """
CREATE FUNCTION ledger_importline_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    file_key text;
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.state = 'posted' THEN
        RAISE EXCEPTION 'a posted line is final: % refused', TG_OP USING ERRCODE = 'restrict_violation';
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND (NEW.batch_id, NEW.book_id, NEW.number, NEW.account, NEW.amount, NEW.key)
            IS DISTINCT FROM (OLD.batch_id, OLD.book_id, OLD.number, OLD.account, OLD.amount, OLD.key) THEN
        RAISE EXCEPTION 'what a line asks for cannot be changed' USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.state <> 'posted' THEN
        RETURN NEW;
    END IF;
    SELECT posting_key INTO file_key FROM ledger_importbatch WHERE id = NEW.batch_id;
    IF (SELECT store FROM ledger_book WHERE id = NEW.book_id) = 'postgres' AND NOT EXISTS (
        SELECT FROM ledger_entry JOIN ledger_account ON ledger_account.id = ledger_entry.account_id
        WHERE ledger_entry.id = NEW.entry AND ledger_entry.book_id = NEW.book_id
          AND ledger_account.number = NEW.account
          -- all or nothing: the file is one posting, and its entry holds the sum of the account's lines
          AND CASE WHEN file_key <> '' THEN ledger_entry.key = file_key
                   ELSE ledger_entry.key = NEW.key AND ledger_entry.amount = NEW.amount END
    ) THEN
        RAISE EXCEPTION 'line % has no entry in the books: it is not posted', NEW.number
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER importline_guard BEFORE INSERT OR UPDATE OR DELETE ON ledger_importline
    FOR EACH ROW EXECUTE FUNCTION ledger_importline_guard();
"""
UNDO = """
DROP TRIGGER importline_guard ON ledger_importline;
DROP FUNCTION ledger_importline_guard();
"""


def run(statements):
    def execute(apps, schema_editor):
        if schema_editor.connection.vendor == "postgresql":  # MariaDB keeps accounts and entries only
            schema_editor.execute(statements, params=None)  # None: its % is not a placeholder

    return execute


class Migration(migrations.Migration):
    dependencies = [("ledger", "0003_imports")]
    operations = [migrations.RunPython(run(FUNCTION), run(UNDO))]
