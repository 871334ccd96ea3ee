"""The ledger's tables. A balance and the entry that explains it are always written together."""

from ledger.models.account import Account
from ledger.models.batch import ImportBatch, ImportChunk, ImportFile, ImportRun
from ledger.models.book import Book
from ledger.models.book_owner import BookOwner
from ledger.models.entry import Entry
from ledger.models.import_line import ImportLine
from ledger.models.lock_record import LockRecord
from ledger.models.reconciliation import Reconciliation

__all__ = [
    "Account",
    "Book",
    "BookOwner",
    "Entry",
    "ImportBatch",
    "ImportChunk",
    "ImportFile",
    "ImportLine",
    "ImportRun",
    "LockRecord",
    "Reconciliation",
]
