"""fenced-at-write: the fencing number as usually drawn. The store compares it when the write arrives.

    A: lock → 5; SELECT → 100   (the numbers 1 … 4 were granted and wrote nothing; A is paused past the lease)
    the lock's server restarts without its counter
    B:                  lock → 1; SELECT → 100; UPDATE … SET balance = 120, fence = 1 WHERE fence < 1 → 1 row
    A: UPDATE … SET balance = 110, fence = 5 WHERE fence < 5 → 1 row        B's 20 are gone

    A: lock → 1; SELECT → 100; …………………………… paused past the lease
    B:                            lock → 2; SELECT → 100
    A: UPDATE … SET balance = 110, fence = 1 WHERE fence < 1 → 1 row        nobody newer has written yet
    B: UPDATE … SET balance = 120, fence = 2 WHERE fence < 2 → 1 row        A's 10 are gone, in the right order

Guarantees   a holder that was paused past its lease cannot write after its successor has written, as long as the
             numbers only grow. An equal number is refused too, so each number writes once.
Breaks when  a late holder writes after its successor has read and before it writes, or the counter is lost and the
             ledger has not seen its last numbers. The writes arrive in the order of their numbers, but the reads
             are not protected: the number must be registered before the balance is read (`fenced`).
Costs        a lock and an unlock, 1 read, and a transaction of 2 writes: less than `fenced`.
Source       M. Kleppmann, "How to do distributed locking" (2016), the figure with the tokens 33 and 34.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ledger.models import Account
from ledger.posting import Change, Line, Posting, Snapshot
from ledger.strategies.base import Outrun
from ledger.strategies.fenced import Fenced
from locks.hazards import Hazard
from locks.token_lock import TokenLock


class FencedAtWrite(Fenced):
    """`fenced` without the registration: it reads first and compares at the write."""

    slug = "fenced-at-write"
    title = "Fenced lock, checked at the write alone"
    guarantees = "a late holder cannot write after its successor, as long as the numbers only grow"
    breaks_when = "a late holder writes between its successor's read and write; the counter is lost"
    round_trips = "1 + 5 + 1"
    withstands: ClassVar[frozenset[Hazard]] = TokenLock.withstands

    def register(self, number: str, lock: Any) -> Snapshot:
        return self.store.read(Posting("", (Line(number, 0),)))[number]

    def write_if_newest(self, change: Change, lock: Any) -> None:
        """UPDATE … WHERE fence < this holder's number. Raises Outrun if the ledger has seen this number or a newer
        one."""
        rows = Account.objects.using(self.store.db).filter(pk=change.before.pk)
        written = rows.filter(fence__lt=lock.fencing_token).update(
            balance=change.after,
            version=change.before.version + 1,
            head=change.entry,
            fence=lock.fencing_token,
        )
        if not written:
            lock.seen(rows.get().fence)
            raise Outrun
