"""The fate of each operation: on the chain, off it, on it twice, or gone without a trace.

| the client saw           | on the chain  | on it twice | off it, or no entry |
|--------------------------|---------------|-------------|---------------------|
| ok                       | acknowledged  | created     | lost                |
| info                     | indeterminate | created     | as if never asked   |
| fail                     | created       | created     | as it should be     |
| the key, elsewhere only  | created       | created     | as it should be     |
| nothing: `unreported`    | indeterminate | created     | as if never asked   |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ledger.reconcile.chain import Chain, beyond_the_break, order
from ledger.reconcile.evidence import Loss, prove, written_over
from ledger.reconcile.problems import shown
from ledger.reconcile.rows import ChainRow, ClientOperation, ClientOutcome


class Tally:
    """Counts over one chain, and the candidates for the first, the last and the worst loss."""

    SENTENCES = 10

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.acknowledged = self.acknowledged_operations = 0
        self.indeterminate = self.indeterminate_operations = self.unreported = 0
        self.lost_amount = self.lost_updates = self.lost_without_trace = self.undecided = 0
        self.created_amount = self.created_updates = 0
        self.created: list[str] = []
        #: keys of known operations that are not on the chain for certain
        self.missing: frozenset[str] = frozenset()
        self._picked: dict[tuple[str, bool], tuple[Any, str, ChainRow | None, ClientOperation | None]] = {}
        self._beyond = beyond_the_break(chain)
        self._applied: dict[str, ChainRow] = {}
        self._off: dict[str, ChainRow] = {}
        self._sort_out()

    def counts(self) -> dict[str, int]:
        """Return the counts, by the names in `Totals`."""
        return {name: value for name, value in vars(self).items() if isinstance(value, int)}

    def proof(self, name: str) -> Loss | None:
        """Return the evidence for the `first`, `last`, `worst` or `clearest` loss, or None if nothing was lost. The
        clearest: two writers who had read the same head, close together; the first where there is none."""
        if name == "clearest" and (name, True) not in self._picked:
            name = "first"
        picked = [self._picked[name, traced] for traced in (True, False) if (name, traced) in self._picked]
        losses = [prove(self.chain, *each[1:]) for each in picked]
        if name == "worst":
            return max(losses, key=lambda loss: (abs(loss.amount), -loss.at), default=None)
        return (max if name == "last" else min)(losses, key=lambda loss: loss.at, default=None)

    def judge_entries(self) -> None:
        """Judge from the store's own view: every entry was acknowledged."""
        self.acknowledged += sum(row.amount for row in self._applied.values())
        self.acknowledged_operations += len(self._applied)
        missing = []
        for key, row in self._off.items():
            if key in self._applied:  # retried, and the retry is on the chain
                continue
            self._acknowledge(row.amount)
            if self.chain.node(row.id) in self._beyond:
                self.undecided += 1
            else:
                missing.append(key)
                self._lose(key, row.amount, row, None)
        self.missing = frozenset(missing)

    def judge_operations(self, known: dict[str, ClientOperation], asked: Collection[str] = ()) -> None:
        """Judge from the clients' view: `known`, the operations that name this account, and `asked`, the keys of the
        operations on any account. An entry on the chain with an unknown key counts as indeterminate."""
        missing = []
        for key, operation in known.items():
            row = self._applied.get(key)
            if row is None:
                if self._absent(operation):
                    missing.append(key)
                continue
            self._present(operation, row)
        self.missing = frozenset(missing)
        for key, row in self._applied.items():
            if key in known:
                continue
            if key in asked:
                number = self.chain.account.number
                self._create(
                    row, f"operation {key} does not name account {number}, and yet it is on its chain"
                )
            else:
                self._unknown(row.amount)
                self.unreported += 1

    def _sort_out(self) -> None:
        """Sort the entries by key: on the chain, and off it. A key twice on the chain is created money."""
        above, applied, off = self.chain.above, self._applied, self._off
        for ident, row in self.chain.rows.items():
            if ident not in above:
                off.setdefault(row.key, row)
            elif (first := applied.setdefault(row.key, row)) is not row:
                self._create(
                    row, f"operation {row.key} is on the chain twice, as entry {shown(first.id)} too"
                )

    def _present(self, operation: ClientOperation, row: ChainRow) -> None:
        if operation.outcome == ClientOutcome.OK:
            self._acknowledge(operation.amount)
        elif operation.outcome == ClientOutcome.INFO:
            self._unknown(operation.amount)
        else:
            twice = "is in another row of its account already" if operation.excess else "was refused"
            self._create(row, f"operation {row.key} {twice}, and yet it is on the chain")
        if row.amount != operation.amount:
            asked = f"operation {row.key} asked for {operation.amount:+}"
            self.chain.problems.add(f"{asked}; its entry {shown(row.id)} has {row.amount:+}")

    def _absent(self, operation: ClientOperation) -> bool:
        """Count an operation that is not on the chain. Returns False if a broken chain leaves it open."""
        row = self._off.get(operation.key)
        if operation.outcome == ClientOutcome.OK:
            self._acknowledge(operation.amount)
        if row is not None and self.chain.node(row.id) in self._beyond:
            self.undecided += operation.outcome == ClientOutcome.OK
            return False
        if operation.outcome == ClientOutcome.OK:
            self._lose(operation.key, operation.amount, row, operation)
        return True

    def _acknowledge(self, amount: int) -> None:
        self.acknowledged += amount
        self.acknowledged_operations += 1

    def _unknown(self, amount: int) -> None:
        self.indeterminate += amount
        self.indeterminate_operations += 1

    def _lose(self, key: str, amount: int, entry: ChainRow | None, operation: ClientOperation | None) -> None:
        self.lost_amount += abs(amount)
        self.lost_updates += 1
        self.lost_without_trace += entry is None
        at = operation.ended if entry is None and operation else order(entry) if entry else 0.0
        ranks: list[tuple[str, Any]] = [("first", -at), ("last", at), ("worst", (abs(amount), -at))]
        if entry is not None and (over := written_over(self.chain, entry)):
            ranks.append(("clearest", (order(entry) - order(over), -at)))
        for name, rank in ranks:
            # entries are ranked by the store's order, losses without a trace by the clients' clock: a list for each
            best = self._picked.get((name, entry is not None))
            if best is None or rank > best[0]:
                self._picked[name, entry is not None] = (rank, key, entry, operation)

    def _create(self, row: ChainRow, sentence: str) -> None:
        self.created_amount += abs(row.amount)
        self.created_updates += 1
        if len(self.created) < self.SENTENCES:
            who = row.whole().worker or "a worker"
            self.created.append(f"{who} wrote entry {shown(row.id)} ({row.amount:+}): {sentence}")


def strongest(operations: Iterable[ClientOperation]) -> dict[str, ClientOperation]:
    """Return one operation for each key. If a client tried several times: `ok` before `info` before `fail`."""
    rank = {ClientOutcome.OK: 2, ClientOutcome.INFO: 1, ClientOutcome.FAIL: 0}
    known: dict[str, ClientOperation] = {}
    for each in operations:
        other = known.setdefault(each.key, each)
        if other is not each and rank[each.outcome] > rank[other.outcome]:
            known[each.key] = each
    return known
