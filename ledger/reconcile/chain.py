"""The chain: the entries from an account's head back to its opening, along `parent`.

    opening ← e1 ← e2 ← e4 ← e5   head       e3 has the same parent as e4 (a fork): somebody who
                    ↖ e3                     had not seen e3 wrote e4, and e3 is gone

Entries form a tree, as commits do. What is on the path from the head is in the balance, what is not is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ledger.reconcile.rows import AccountRow, EntryRow

#: Entries are looked up by `id.int`: hashing a UUID costs five times as much.
NodeId = int | None  # None: the opening


class Problems:
    """What does not add up, in sentences: the first few, and how many there were."""

    KEPT = 10

    def __init__(self) -> None:
        self.count = 0
        self.sentences: list[str] = []

    def add(self, sentence: str) -> None:
        self.count += 1
        if len(self.sentences) < self.KEPT:
            self.sentences.append(sentence)


@dataclass(slots=True)
class Chain:
    """One account's tree of entries, with the path from its head marked."""

    account: AccountRow
    rows: dict[int, EntryRow] = field(default_factory=dict)
    #: node on the chain → the entry written on top of it (None: it is the head)
    above: dict[NodeId, EntryRow | None] = field(default_factory=dict)
    #: nodes that some entry has as its parent
    parents: set[NodeId] = field(default_factory=set)
    #: node with several children → how many
    forks: dict[NodeId, int] = field(default_factory=dict)
    total: int = 0  # Σ amounts on the chain
    broken: bool = False  # the path does not lead back to the opening
    problems: Problems = field(default_factory=Problems)
    _ordered: list[EntryRow] = field(default_factory=list, repr=False)

    def in_order(self) -> list[EntryRow]:
        """All entries in the order in which they were written: by the store's number, else by the clocks."""
        if len(self._ordered) != len(self.rows):
            self._ordered = sorted(self.rows.values(), key=lambda row: (row.seq, row.written_at))
        return self._ordered

    def branching_point(self, row: EntryRow) -> tuple[bool, NodeId]:
        """Where `row`, which is off the chain, left it: (True, node).

        (False, node) if its parents lead elsewhere: to an entry that is not there, or in a circle.
        """
        seen: set[int] = set()
        node = row.parent.int if row.parent else None
        while node not in self.above:
            if node is None or node in seen or node not in self.rows:
                return False, node
            seen.add(node)
            parent = self.rows[node].parent
            node = parent.int if parent else None
        return True, node


def follow(account: AccountRow, entries: Iterable[EntryRow]) -> Chain:
    """Read all entries of `account`, then walk from its head to its opening and check each step."""
    chain = Chain(account)
    _read(chain, entries)
    _walk(chain)
    found = account.opening + chain.total
    if not chain.broken and found != account.balance:
        chain.problems.add(
            f"account {account.number}: opening {account.opening} and the entries on the chain "
            f"({chain.total:+}) make {found}, but the balance is {account.balance}"
        )
    return chain


def _read(chain: Chain, entries: Iterable[EntryRow]) -> None:
    rows, parents, forks = chain.rows, chain.parents, chain.forks
    for row in entries:
        ident = row.id.int
        if ident in rows:
            chain.problems.add(f"entry {row.id} appears twice; the second one is left out")
            continue
        rows[ident] = row
        parent = row.parent.int if row.parent is not None else None
        if parent in parents:
            forks[parent] = forks.get(parent, 1) + 1
        else:
            parents.add(parent)


def _walk(chain: Chain) -> None:
    account, rows, above, problems = chain.account, chain.rows, chain.above, chain.problems
    last: EntryRow | None = None  # the entry visited before: it names `node` as its parent
    expected = account.balance  # what the entry (or the opening) must have left behind
    node = account.head
    while node is not None:
        row = rows.get(node.int)
        if row is None or node.int in above:
            chain.broken = True
            who = (
                f"entry {last.id} names as its parent"
                if last
                else f"account {account.number} has as its head"
            )
            what = "which is not in the books" if row is None else "which comes after it: a cycle"
            problems.add(f"the chain is broken: {who} {node}, {what}")
            above.setdefault(node.int, last)  # what else branches off there is off the chain for certain
            return
        if row.balance_after != expected:
            who = f"entry {last.id} read" if last else f"account {account.number} has"
            problems.add(f"{who} {expected}, but entry {row.id} before it wrote {row.balance_after}")
        if row.balance_after != row.balance_before + row.amount:
            problems.add(f"entry {row.id}: {row.balance_before} {row.amount:+} is not {row.balance_after}")
        above[node.int] = last
        chain.total += row.amount
        last, expected, node = row, row.balance_before, row.parent
    above[None] = last
    if expected != account.opening:
        who = f"the first entry, {last.id}, read" if last else f"account {account.number} has no head but"
        problems.add(f"{who} {expected}, but the opening balance is {account.opening}")


def beyond_the_break(chain: Chain) -> set[int]:
    """Ids of entries that a broken chain may or may not contain: they do not branch off its known part."""
    if not chain.broken:
        return set()
    undecided: dict[int, bool] = {}
    for ident in chain.rows:
        path: list[int] = []
        node: NodeId = ident
        while node is not None and node in chain.rows and node not in chain.above and node not in undecided:
            undecided[node] = True  # so that a cycle ends here
            path.append(node)
            parent = chain.rows[node].parent
            node = parent.int if parent else None
        unknown = node not in chain.above and (node is None or undecided.get(node, True))
        undecided.update(dict.fromkeys(path, unknown))
    return {ident for ident, unknown in undecided.items() if unknown}
