"""Reconcile: what is lost, and which write destroyed it. Pure functions over plain tuples, in linear time."""

from ledger.reconcile.account import AccountBooks, reconcile
from ledger.reconcile.book import Books, Leg, Torn, legs_of, reconcile_book
from ledger.reconcile.evidence import Loss
from ledger.reconcile.rows import AccountRow, EntryRow, Operation, Outcome, Row
from ledger.reconcile.tally import strongest
from ledger.reconcile.totals import Totals

__all__ = [
    "AccountBooks",
    "AccountRow",
    "Books",
    "EntryRow",
    "Leg",
    "Loss",
    "Operation",
    "Outcome",
    "Row",
    "Torn",
    "Totals",
    "legs_of",
    "reconcile",
    "reconcile_book",
    "strongest",
]
