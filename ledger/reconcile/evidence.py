"""The proof of one loss, with values: which write destroyed it, as fields and as a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledger.reconcile.chain import Chain, Node, order
from ledger.reconcile.problems import shown
from ledger.reconcile.rows import ChainRow, ClientOperation, EntryRow


@dataclass(frozen=True, slots=True)
class Loss:
    """One acknowledged operation that is off the chain.

    `entry`: what its writer recorded (None: it has no entry any more). `overwritten_by`: the write that destroyed it
    (None: no entry did; the store forgot it). `branches`: how many entries were written by workers that had read the
    same head as the overwriter.
    """

    account: str
    key: str
    amount: int
    worker: str
    at: float  # seconds since the epoch: written, or acknowledged if there is no entry
    entry: EntryRow | None
    overwritten_by: EntryRow | None
    branches: int
    sentence: str

    @property
    def unclear(self) -> tuple[bool, float]:
        """The smaller, the sooner a reader sees it: both had read the same head, and wrote close together."""
        if self.entry is None or self.overwritten_by is None:
            return True, self.at
        apart = (self.overwritten_by.written_at - self.entry.read_at).total_seconds()
        return self.entry.parent != self.overwritten_by.parent, apart

    def as_json(self) -> dict[str, Any]:
        return {
            "account": self.account,
            "key": self.key,
            "amount": self.amount,
            "worker": self.worker,
            "at": self.at,
            "lost": entry_json(self.entry),
            "overwritten_by": entry_json(self.overwritten_by),
            "branches": self.branches,
            "sentence": self.sentence,
        }


def entry_json(row: EntryRow | None) -> dict[str, Any] | None:
    """Return `row` for JSON: ids as strings, times in ISO 8601."""
    if row is None:
        return None
    return {
        **row._asdict(),
        "id": str(row.id),
        "parent": str(row.parent) if row.parent else None,
        "read_at": row.read_at.isoformat(),
        "written_at": row.written_at.isoformat(),
    }


def prove(chain: Chain, key: str, row: ChainRow | None, operation: ClientOperation | None) -> Loss:
    """Return the evidence for a lost operation: from its entry `row`, off the chain, or from what the client saw."""
    number = chain.account.number
    if row is None:
        assert operation is not None  # an entry or a client shows every loss
        worker, at, amount = operation.worker, operation.ended, operation.amount
        return Loss(number, key, amount, worker, at, None, None, 0, _forgotten(operation))
    lost = row.whole()
    found, directly = overwriter(chain, row)
    by = found.whole() if found else None
    branches = chain.forks.get(chain.node(found.parent), 1) if found else 0
    sentence = _overwritten(lost, by, directly) if by else _rewound(chain, lost, *chain.branching_point(row))
    return Loss(
        number, key, lost.amount, lost.worker, lost.written_at.timestamp(), lost, by, branches, sentence
    )


def overwriter(chain: Chain, lost: ChainRow) -> tuple[ChainRow | None, bool]:
    """Return the write that destroyed `lost`, or None if no entry did, and whether `lost` was the head at that moment.

    Take the writes in order. A write on top of `lost`, or on top of a descendant of it, keeps it in the balance. The
    first other write removes it. A later writer that had read the old balance may bring it back (A wrote, B overwrote
    A, D had read A's balance and overwrote B: the chain is A, D). The destroyer is therefore the last write that
    removes it.
    """
    if not chain.branching_point(lost)[0]:
        return None, False  # its parents lead nowhere, so its base is unknown
    node = chain.node
    with_lost = {node(lost.id)}
    destroyer: ChainRow | None = None
    directly = written = False
    for row in chain.in_order():
        if not written:
            written = row is lost
        elif node(row.parent) in with_lost:
            with_lost.add(node(row.id))
            destroyer = None
        elif destroyer is None:
            destroyer, directly = row, len(with_lost) == 1
    return destroyer, directly


def written_over(chain: Chain, lost: ChainRow) -> ChainRow | None:
    """Return the entry of the chain whose writer had read the same head as the writer of `lost`, and wrote after it:
    the two that a reader sees at once. None if there is none. No walk: it is asked of every loss."""
    there = chain.above.get(chain.node(lost.parent))
    return there if there is not None and there is not lost and order(there) > order(lost) else None


def clock(moment: datetime) -> str:
    """Return the time of day with milliseconds."""
    return f"{moment:%H:%M:%S.%f}"[:-3]


def _overwritten(lost: EntryRow, by: EntryRow, directly: bool) -> str:
    first, second = lost.worker or "one worker", by.worker or "another worker"
    if first == second:
        first, second = f"{first} (key {lost.key})", f"{second} (key {by.key})"
    there = f"{first}'s {lost.balance_after:,}"
    over = f"over {there}" if directly else f"as if {there} were not there"
    wrote = f"{first} wrote {lost.balance_after:,} ({lost.amount:+,}) at {clock(lost.written_at)}"
    wrote_over = f"{second} wrote {by.balance_after:,} ({by.amount:+,}) {over} at {clock(by.written_at)}"
    if lost.parent == by.parent:
        times = f"at {clock(lost.read_at)} and {clock(by.read_at)} UTC"
        reads = f"{first} and {second} both read {lost.balance_before:,} ({times}). {wrote}."
    else:
        reads = (
            f"{first} read {lost.balance_before:,} at {clock(lost.read_at)} UTC. {wrote}. {second} had read "
            f"{by.balance_before:,} at {clock(by.read_at)}, a balance without that entry."
        )
    return f"{reads} {wrote_over}: {abs(lost.amount):,} lost."


def _rewound(chain: Chain, lost: EntryRow, found: bool, node: Node) -> str:
    account = chain.account
    wrote = (
        f"{lost.worker or 'a worker'} read {lost.balance_before:,} at {clock(lost.read_at)} UTC and wrote "
        f"{lost.balance_after:,} ({lost.amount:+,}) at {clock(lost.written_at)}"
    )
    if not found and node is not None:
        return (
            f"{wrote}, after the entry {shown(node)}, which is not in the books. {abs(lost.amount):,} lost."
        )
    stands = f"the head {account.head}" if account.head else "no head"
    return (
        f"{wrote}, but account {account.number} stands at {account.balance:,} with {stands}, and no entry on "
        f"its chain was written in its place: the store went back to an older state, or a write left no "
        f"entry. {abs(lost.amount):,} lost."
    )


def _forgotten(operation: ClientOperation) -> str:
    return (
        f"{operation.worker or 'a client'} was told that operation {operation.key} ({operation.amount:+,}) "
        f"was done, but the store has no entry of it: it was forgotten, without a trace. "
        f"{abs(operation.amount):,} lost."
    )
