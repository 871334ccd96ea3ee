"""A store keeps balances. It reads and writes without protection: protecting the two is the strategy's job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar

from ledger.models import Book
from ledger.posting import Change, Posting, Snapshot, Stored
from ledger.reconcile import AccountRow, ChainRow, ClientOperation, EntryRow, Leg
from ledger.stores.segments import joined


class Store(ABC):
    """One book's accounts and entries on one server. Raises NotConfigured if there is no such server."""

    slug: ClassVar[str]

    def __init__(self, book: Book) -> None:
        self.book = book

    @abstractmethod
    def open(self, accounts: Iterable[Snapshot]) -> None:
        """Create the accounts (number, opening balance, floor)."""

    @abstractmethod
    def read(self, posting: Posting) -> dict[str, Snapshot]:
        """Read the posting's accounts without any protection. Raises Refused for an unknown account."""

    @abstractmethod
    def write(self, changes: Sequence[Change]) -> None:
        """Write balances and entries in one transaction, over the current contents.

        Raises KeyTaken if an entry with this key exists already; nothing is written then.
        """

    def open_blocks(self) -> int:
        """Return how many transactions and savepoints are open here, around what was written. A store without
        transactions has none."""
        return 0

    @abstractmethod
    def find(self, key: str) -> tuple[str, tuple[Stored, ...]] | None:
        """Return (fingerprint, entries) of the posting with this key, or None."""

    def at_one_moment(self) -> AbstractContextManager[None]:
        """Reads inside see the accounts and their entries as they were at one moment. If a store cannot do that,
        reconcile works only while no one writes to the accounts."""
        return nullcontext()

    def spread(
        self, operations: Mapping[str, Sequence[ClientOperation]]
    ) -> Mapping[str, Sequence[ClientOperation]]:
        """Return the clients' `operations`, grouped by the rows that keep the accounts: here one row each."""
        return operations

    @abstractmethod
    def accounts(self) -> Iterator[tuple[AccountRow, int | str]]:
        """Yield each existing account with its primary key."""

    def forgotten(self) -> Iterable[str]:
        """Return the numbers of accounts that were opened but that `accounts` did not find. A database forgets none."""
        return ()

    def problems(self) -> Iterable[str]:
        """Return what is wrong with the book as a whole, as sentences. Call it after reading `accounts`."""
        return ()

    def whole_accounts(self) -> list[AccountRow]:
        """Return the accounts as their clients know them: a split account once, with its sums and without a head."""
        return joined(row for row, _ in self.accounts())

    @abstractmethod
    def account(self, pk: int | str) -> AccountRow:
        """Return one account as it is now."""

    @abstractmethod
    def legs(self, keys: Collection[str]) -> Iterable[Leg]:
        """Return every account's share of the postings with these keys."""

    @abstractmethod
    def entries(self, pk: int | str) -> Iterator[EntryRow]:
        """Yield the account's entries, streamed."""

    def links(self, pk: int | str) -> Iterator[ChainRow]:
        """Yield the account's entries as reconcile needs them: as full entries, unless the store has a faster way."""
        return self.entries(pk)

    def everything(self) -> Iterator[tuple[AccountRow, Iterable[ChainRow]]]:
        """Yield each account with its entries. Read the entries before asking for the next account."""
        return ((row, self.entries(pk)) for row, pk in self.accounts())


class KeyTaken(Exception):
    """Another request with this idempotency key was applied meanwhile."""
