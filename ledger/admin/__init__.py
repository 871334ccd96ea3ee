"""The admin: books, accounts and entries to read, imports to start. Nothing here changes a balance by hand."""

from ledger.admin import book_pages, imports, lock_records, users

__all__ = ["book_pages", "imports", "lock_records", "users"]
