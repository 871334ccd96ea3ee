"""A group of orders: computed in memory by the owner, committed by one statement."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from ledger.models import Book
from ledger.stores.arrays import plain, quoted
from ledger.writer.clients import OpenOrder
from ledger.writer.wire import Told

# The renewal of the lease locks the owner's row: no other process can become the owner before this commits, and with
# an old fencing number nothing is written at all.
# If an account no longer exists, no entry gets an account, and the whole statement fails.
COMMIT = """
WITH owner AS (
    UPDATE ledger_bookowner SET until = clock_timestamp() + make_interval(secs => $3::float8)
    WHERE book_id = $1::uuid AND fence = $2::bigint RETURNING book_id
), account AS (
    UPDATE ledger_account SET balance = a.balance, version = a.version, head = a.head
    FROM owner, unnest((SELECT $5::bigint[]), $6::bigint[], $7::bigint[], $8::uuid[]) AS a (pk, balance, version, head)
    WHERE id = a.pk RETURNING id
), entry AS (
    INSERT INTO ledger_entry (id, book_id, account_id, key, fingerprint, place, amount, balance_before,
                              balance_after, parent, worker, read_at, written_at)
    SELECT e.id, owner.book_id,
           CASE WHEN (SELECT count(*) FROM account) = cardinality($5::bigint[]) THEN e.account END,
           e.key, e.fingerprint, e.place, e.amount, e.after - e.amount, e.after, e.parent, e.worker,
           $4::timestamptz, clock_timestamp()
    FROM owner, unnest($9::uuid[], $10::bigint[], $11::text[], $12::text[], $13::bigint[], $14::bigint[],
                       $15::uuid[], $16::text[], $17::int[])
         WITH ORDINALITY AS e (id, account, key, fingerprint, amount, after, parent, worker, place, n)
    ORDER BY e.n
)
SELECT count(*) FROM owner
"""


@dataclass(slots=True)
class AccountState:
    """An account in the owner's memory."""

    pk: str
    balance: int
    version: int
    head: str
    floor: int | None


@dataclass(slots=True)
class Group:
    """The columns that a group will write, and the answers for its callers."""

    asked: list[OpenOrder] = field(default_factory=list)
    answers: list[list[Told]] = field(default_factory=list)
    touched: dict[str, AccountState] = field(default_factory=dict)
    keys: dict[str, tuple[str, list[int]]] = field(default_factory=dict)
    id: list[str] = field(default_factory=list)
    account: list[str] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    fingerprint: list[str] = field(default_factory=list)
    amount: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    parent: list[str] = field(default_factory=list)
    worker: list[str] = field(default_factory=list)
    place: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The number of entries in the group."""
        return len(self.id)

    def values(self, book: Book, fence: int, lease: float) -> list[str]:
        """Return the parameters of COMMIT."""
        states = self.touched.values()
        return [
            str(book.pk),
            str(fence),
            str(lease),
            datetime.now(UTC).isoformat(),
            plain([state.pk for state in states]),
            plain([str(state.balance) for state in states]),
            plain([str(state.version) for state in states]),
            plain([state.head for state in states]),
            plain(self.id),
            plain(self.account),
            quoted(self.key),
            quoted(self.fingerprint),
            plain(self.amount),
            plain(self.after),
            plain(self.parent),
            quoted(self.worker),
            plain(self.place),
        ]
