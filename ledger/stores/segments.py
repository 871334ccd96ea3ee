"""An account in several rows: X is the sum of X/0, X/1, … (see the strategy segmented-balance)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ledger.posting import Snapshot
from ledger.reconcile import AccountRow, ClientOperation, ClientOutcome
from ledger.reconcile.rows import SEGMENT, account_of


def row_of(number: str, segment: int) -> str:
    """Return the number of one of an account's rows."""
    return f"{number}{SEGMENT}{segment}"


def total(number: str, parts: Sequence[Snapshot]) -> Snapshot:
    """Return the account as a whole. It has no head: each row has its own."""
    floors = [part.floor for part in parts if part.floor is not None]
    balance, version = sum(part.balance for part in parts), sum(part.version for part in parts)
    return Snapshot(number, number, balance, version, None, sum(floors) if floors else None)


def joined(rows: Iterable[AccountRow]) -> list[AccountRow]:
    """Return the accounts as their clients know them, in the order of `rows`. The rows of a split account become one,
    with their sums and without a head."""
    parts: dict[str, list[AccountRow]] = {}
    for row in rows:
        parts.setdefault(account_of(row.number), []).append(row)
    return [only[0] if only[0].number == number else _sum(number, only) for number, only in parts.items()]


def _sum(number: str, rows: Sequence[AccountRow]) -> AccountRow:
    floors = [row.floor for row in rows if row.floor is not None]
    opening, balance, version = (sum(column) for column in zip(*(row[1:4] for row in rows), strict=True))
    return AccountRow(number, opening, balance, version, None, sum(floors) if floors else None)


def spread(
    operations: Mapping[str, Sequence[ClientOperation]], legs: Iterable[tuple[str, str, int]]
) -> Mapping[str, Sequence[ClientOperation]]:
    """Return the clients' `operations` by row instead of by account.

    `legs`: (key, row, amount) of each entry, in the order of writing. The shares of one operation always add up to
    what its client asked for, whatever was written, because the entries are judged by them. An operation without an
    entry belongs to the first row.
    """
    parts: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for key, row, amount in legs:
        parts.setdefault((account_of(row), key), []).append((row, amount))
    by_row: dict[str, list[ClientOperation]] = {}
    for number, seen in operations.items():
        for each in seen:
            for row, share in _shares(
                each, parts.get((number, each.key), [(row_of(number, 0), each.amount)])
            ):
                by_row.setdefault(row, []).append(share)
    return by_row


def _shares(asked: ClientOperation, legs: Sequence[tuple[str, int]]) -> list[tuple[str, ClientOperation]]:
    """Return each row's share of one operation.

    If the first legs already add up to the requested amount, the further ones are in excess. If no legs do, the first
    row's share takes up the difference.
    """
    rest, shares = asked.amount, []
    for row, amount in legs:
        fits = min(0, rest) <= amount <= max(0, rest)
        rest -= amount if fits else 0
        share = asked if fits else asked._replace(outcome=ClientOutcome.FAIL, excess=True)
        shares.append((row, share._replace(amount=amount)))
    if rest:
        wrong = asked.amount - sum(amount for _, amount in legs)
        shares = [(row, asked._replace(amount=amount)) for row, amount in legs]
        row, first = shares[0]
        shares[0] = (row, first._replace(amount=first.amount + wrong))
    return shares
