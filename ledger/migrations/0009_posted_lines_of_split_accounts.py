"""A line for an account with several rows can be posted too: its entries are those of the rows."""

from importlib import import_module

from django.db import migrations

before = import_module("ledger.migrations.0004_posted_lines_are_final")
FUNCTION = """
CREATE OR REPLACE FUNCTION ledger_importline_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    file_key text;
    found bool;
    posted numeric;
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
    IF (SELECT store FROM ledger_book WHERE id = NEW.book_id) <> 'postgres' THEN
        RETURN NEW;
    END IF;
    SELECT posting_key INTO file_key FROM ledger_importbatch WHERE id = NEW.batch_id;
    -- an account may be kept in rows (X/0, X/1, …), and a withdrawal taken from several of them
    SELECT bool_or(ledger_entry.id = NEW.entry), sum(ledger_entry.amount) INTO found, posted
        FROM ledger_entry JOIN ledger_account ON ledger_account.id = ledger_entry.account_id
        WHERE ledger_entry.book_id = NEW.book_id AND split_part(ledger_account.number, '/', 1) = NEW.account
          AND ledger_entry.key = CASE WHEN file_key <> '' THEN file_key ELSE NEW.key END;
    -- all or nothing: the file is one posting, and its entry holds the sum of the account's lines
    IF found IS NOT TRUE OR (file_key = '' AND posted <> NEW.amount) THEN
        RAISE EXCEPTION 'line % has no entry in the books: it is not posted', NEW.number
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
"""
UNDO = before.FUNCTION.split("CREATE TRIGGER")[0].replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")


class Migration(migrations.Migration):
    dependencies = [("ledger", "0008_entries_without_foreign_keys")]
    operations = [migrations.RunPython(before.run(FUNCTION), before.run(UNDO))]
