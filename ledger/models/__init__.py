"""The ledger's tables. A balance and the entry that explains it are always written together."""

from ledger.models.account import Account
from ledger.models.book import Book
from ledger.models.entry import Entry

__all__ = ["Account", "Book", "Entry"]
