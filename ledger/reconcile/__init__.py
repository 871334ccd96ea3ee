"""Reconcile: what is lost, and which write destroyed it. Pure functions over plain tuples, in linear time."""

from ledger.reconcile.account import AccountBooks, reconcile
from ledger.reconcile.book import Books, Leg, Torn, legs_of, reconcile_book
from ledger.reconcile.evidence import Loss
from ledger.reconcile.rows import AccountRow, ChainRow, ClientOperation, ClientOutcome, EntryRow
from ledger.reconcile.tally import strongest
from ledger.reconcile.totals import Totals

__all__ = [
    "AccountBooks",
    "AccountRow",
    "Books",
    "ChainRow",
    "ClientOperation",
    "ClientOutcome",
    "EntryRow",
    "Leg",
    "Loss",
    "Torn",
    "Totals",
    "legs_of",
    "reconcile",
    "reconcile_book",
    "strongest",
]
