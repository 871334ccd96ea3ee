"""The chain: the entries from an account's head back to its opening, along `parent`.

    opening ← e1 ← e2 ← e4 ← e5   head       e3 has the same parent as e4 (a fork): somebody who
                    ↖ e3                     had not seen e3 wrote e4, and e3 is gone

Entries form a tree, as commits do. An entry on the path from the head is in the balance; any other is gone.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import add
from typing import Any
from uuid import UUID

from ledger.reconcile.problems import Problems, shown
from ledger.reconcile.rows import AccountRow, ChainRow

#: the lookup key of an entry: the int of a UUID (hashing the UUID costs five times as much), or bytes as they are.
#: None: the opening
Node = int | bytes | None


def by_int(ident: UUID | None) -> Node:
    return None if ident is None else ident.int


def as_is(ident: bytes | None) -> Node:
    return ident


@dataclass(slots=True)
class Chain:
    """One account's tree of entries, with the path from its head marked."""

    account: AccountRow
    node: Callable[[Any], Node] = by_int
    rows: dict[Node, ChainRow] = field(default_factory=dict)
    #: node on the chain → the entry written on top of it (None: it is the head)
    above: dict[Node, ChainRow | None] = field(default_factory=dict)
    #: node with several children → how many
    forks: dict[Node, int] = field(default_factory=dict)
    total: int = 0  # Σ amounts on the chain
    lowest: int = 0  # the lowest balance that it ever had, by all its entries
    broken: bool = False  # the path does not lead back to the opening
    problems: Problems = field(default_factory=Problems)
    _ordered: list[ChainRow] = field(default_factory=list, repr=False)

    def in_order(self) -> list[ChainRow]:
        """Return all entries in the order of their writes: by the store's number, or else by the clocks."""
        if len(self._ordered) != len(self.rows):
            self._ordered = sorted(self.rows.values(), key=order)
        return self._ordered

    def branching_point(self, row: ChainRow) -> tuple[bool, Node]:
        """Return (True, node): the node at which `row`, which is off the chain, left it.

        (False, node) if its parents do not lead to the chain, but to a missing entry or in a circle.
        """
        seen: set[Node] = set()
        node = self.node(row.parent)
        while node not in self.above:
            if node is None or node in seen or node not in self.rows:
                return False, node
            seen.add(node)
            node = self.node(self.rows[node].parent)
        return True, node


def order(row: ChainRow) -> float:
    """Sorts entries by when they were written."""
    return row.seq or row.whole().written_at.timestamp()


def follow(account: AccountRow, entries: Iterable[ChainRow]) -> Chain:
    """Read all entries of `account`, then walk from its head to its opening and check each step."""
    chain = Chain(account, lowest=min(account.opening, account.balance))
    with collector_paused():
        parents = _read(chain, entries)
        if not _straight(chain, parents):
            _walk(chain)
    found = account.opening + chain.total
    if not chain.broken and found != account.balance:
        chain.problems.add(
            f"account {account.number}: opening {account.opening} and the entries on the chain "
            f"({chain.total:+,}) make {found:,}, but the balance is {account.balance:,}"
        )
    return chain


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector. It would scan a million live rows again and again, find nothing, and take a quarter
    of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read(chain: Chain, entries: Iterable[ChainRow]) -> list[Node]:
    """Read the entries and return the parent of each. One pass for each property takes half the time of a single loop
    for all of them."""
    read = list(entries)
    if not read:
        return []
    node: Callable[[Any], Node] = as_is if isinstance(read[0].id, bytes) else by_int
    chain.node = node
    rows = chain.rows = {node(row.id): row for row in read}
    if len(rows) < len(read):
        rows = chain.rows = _first_ones(chain, read)
    parents = [node(row.parent) for row in rows.values()]
    if len(set(parents)) < len(parents):
        chain.forks = {parent: times for parent, times in Counter(parents).items() if times > 1}
    lowest = min(row.balance_after for row in rows.values())
    chain.lowest = min(chain.lowest, lowest)
    return parents


def _first_ones(chain: Chain, read: Iterable[ChainRow]) -> dict[Node, ChainRow]:
    """Return the entries by id. If an id occurs more than once, the first entry counts."""
    rows: dict[Node, ChainRow] = {}
    for row in read:
        if rows.setdefault(chain.node(row.id), row) is not row:
            chain.problems.add(f"entry {shown(row.id)} appears twice; the second one is left out")
    return rows


def _straight(chain: Chain, parents: list[Node]) -> bool:
    """Do the entries form the chain in the given order, each on top of the previous one, with the right balances?

    If so, mark them all at once, in a third of the time of the walk.
    """
    account, nodes, rows = chain.account, list(chain.rows), list(chain.rows.values())
    if not rows or nodes[-1] != _head(chain) or parents != [None, *nodes[:-1]]:
        return False
    before = [row.balance_before for row in rows]
    amounts = [row.amount for row in rows]
    after = [row.balance_after for row in rows]
    if [account.opening, *after] != [*before, account.balance] or list(map(add, before, amounts)) != after:
        return False
    chain.above = dict(zip([None, *nodes], [*rows, None], strict=True))
    chain.total = sum(amounts)
    return True


def _head(chain: Chain) -> Node:
    head = chain.account.head
    return None if head is None else head.bytes if chain.node is as_is else head.int


def _walk(chain: Chain) -> None:
    account, rows, above = chain.account, chain.rows, chain.above
    node_of, problems = chain.node, chain.problems
    last: ChainRow | None = None  # the entry visited before: it names `node` as its parent
    expected = account.balance  # what the entry (or the opening) must have left behind
    node = _head(chain)
    while node is not None:
        row = rows.get(node)
        if row is None or node in above:
            chain.broken = True
            problems.broken(account, last, node, cycle=row is not None)
            above.setdefault(node, last)  # other branches from here are certainly off the chain
            return
        if row.balance_after != expected:
            problems.other_balance(account, last, expected, row)
        if row.balance_after != row.balance_before + row.amount:
            problems.wrong_sum(row)
        above[node] = last
        chain.total += row.amount
        last, expected, node = row, row.balance_before, node_of(row.parent)
    above[None] = last
    if expected != account.opening:
        problems.other_opening(account, last, expected)


def beyond_the_break(chain: Chain) -> set[Node]:
    """Return the ids of entries of which a broken chain cannot say whether it contains them."""
    if not chain.broken:
        return set()
    undecided: dict[Node, bool] = {}
    for ident in chain.rows:
        path: list[Node] = []
        node = ident
        while node in chain.rows and node not in chain.above and node not in undecided:
            undecided[node] = True  # so that a cycle ends here
            path.append(node)
            node = chain.node(chain.rows[node].parent)
        unknown = node not in chain.above and undecided.get(node, True)
        undecided.update(dict.fromkeys(path, unknown))
    return {ident for ident, unknown in undecided.items() if unknown}
