"""A line remembers that a request for it was never answered. And a line of an all-or-nothing file is looked up by its
entry. Until now each such line added up all entries of the file's key, so the cost of an import grew quadratically.
"""

from importlib import import_module

from django.db import migrations, models

before = import_module("ledger.migrations.0009_posted_lines_of_split_accounts")
SUMS = before.FUNCTION.index("    -- an account may be kept in rows")
SUMS_END = before.FUNCTION.index("    RETURN NEW;\nEND $$;")
LOOKED_UP = """
    -- an account may be kept in rows (X/0, X/1, …), and a withdrawal taken from several of them
    IF file_key <> '' THEN
        -- all or nothing: the file is one posting, and its entry holds the sum of the account's lines
        found := (
            SELECT ledger_entry.book_id = NEW.book_id AND ledger_entry.key = file_key
                   AND split_part(ledger_account.number, '/', 1) = NEW.account
            FROM ledger_entry JOIN ledger_account ON ledger_account.id = ledger_entry.account_id
            WHERE ledger_entry.id = NEW.entry);  -- and no other condition: another index could be taken for it
    ELSE
        SELECT bool_or(ledger_entry.id = NEW.entry), sum(ledger_entry.amount) INTO found, posted
            FROM ledger_entry JOIN ledger_account ON ledger_account.id = ledger_entry.account_id
            WHERE ledger_entry.book_id = NEW.book_id AND ledger_entry.key = NEW.key
              AND split_part(ledger_account.number, '/', 1) = NEW.account;
    END IF;
    IF found IS NOT TRUE OR posted <> NEW.amount THEN
        RAISE EXCEPTION 'line % has no entry in the books: it is not posted', NEW.number
            USING ERRCODE = 'check_violation';
    END IF;
""".lstrip("\n")
FUNCTION = before.FUNCTION[:SUMS] + LOOKED_UP + before.FUNCTION[SUMS_END:]
#: what was unknown before stays so
DOUBTED = """
UPDATE ledger_importline SET doubt = true
    WHERE state IN ('unknown', 'stopped') OR (state = 'waiting' AND attempts > 0);
"""
run = before.before.run


class Migration(migrations.Migration):
    dependencies = [("ledger", "0013_a_key_once_in_a_book")]
    operations = [
        migrations.AddField(
            "importline",
            "doubt",
            models.BooleanField(
                db_default=False,
                editable=False,
                help_text="a request for it was never answered, and may yet be applied: until it is posted, nothing "
                "else is certain",
            ),
        ),
        migrations.RunPython(run(DOUBTED), migrations.RunPython.noop),
        migrations.RunPython(run(FUNCTION), run(before.FUNCTION)),
    ]
