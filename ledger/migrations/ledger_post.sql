-- The strategy select-for-update-function. Locks, reads, checks and writes each account of one posting, in the
-- order in which they are given (the caller sorts them into one common order). Raises LU001 for what the
-- business refuses; the caller's transaction is then rolled back as a whole.
CREATE OR REPLACE FUNCTION ledger_post(
    the_book uuid, numbers text[], amounts bigint[], entries uuid[], the_key text, the_fingerprint text, the_worker text
) RETURNS TABLE (entry uuid, number text, amount bigint, balance_before bigint, balance_after bigint)
LANGUAGE plpgsql AS $$
DECLARE
    account ledger_account;
    read_at timestamptz;
BEGIN
    FOR i IN 1 .. array_length(numbers, 1) LOOP
        SELECT * INTO account FROM ledger_account a WHERE a.book_id = the_book AND a.number = numbers[i] FOR UPDATE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'no account % in this book', numbers[i] USING ERRCODE = 'LU001';
        END IF;
        read_at := clock_timestamp();
        entry := entries[i];
        number := numbers[i];
        amount := amounts[i];
        balance_before := account.balance;
        balance_after := account.balance + amount;
        IF amount < 0 AND balance_after < account.floor THEN
            RAISE EXCEPTION 'account % has %: % would break %', number, account.balance, amount, account.floor
                USING ERRCODE = 'LU001';
        END IF;
        UPDATE ledger_account a SET balance = balance_after, version = account.version + 1, head = entry
            WHERE a.id = account.id;
        INSERT INTO ledger_entry (id, book_id, account_id, key, fingerprint, place, amount, balance_before, balance_after,
                                  parent, worker, read_at, written_at)
            VALUES (entry, the_book, account.id, the_key, the_fingerprint, i - 1, amount, balance_before, balance_after,
                    account.head, the_worker, read_at, clock_timestamp());
        RETURN NEXT;
    END LOOP;
END $$;
