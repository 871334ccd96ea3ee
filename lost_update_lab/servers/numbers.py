"""The number of a sequence is no row: others see it before COMMIT, and no ROLLBACK takes it back.

    A, B: SELECT last_value FROM invoice_number        both read 1
    A:    SELECT setval('invoice_number', 2); COMMIT
    B:    SELECT setval('invoice_number', 2); COMMIT    two invoices have the number 2

A number that is only drawn (nextval) is another one each time, whoever comes first. One that is read, or set, is not:
the explorer has no schedule in which it is seen before its transaction ends.
"""

NUMBER = "a command reads, or sets, the number of a sequence, which others see before COMMIT"
IN_A_ROW = "keep that number in a row of a table, and lock the row; drawing numbers (nextval) may stay"
