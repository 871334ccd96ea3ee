"""row-lock-nowait: lock the row, or fail at once because another session has it, and try again later.

    A: BEGIN; SELECT … FOR UPDATE NOWAIT → 100
    B:                  BEGIN; SELECT … FOR UPDATE NOWAIT → error 55P03; ROLLBACK; wait a random while
    A: UPDATE balance = 110; INSERT entry; COMMIT
    B:                  BEGIN; SELECT … FOR UPDATE NOWAIT → 110 …

Guarantees   no lost update, as `select-for-update`. No database session stands in a queue: a caller that does not
             get the row can do something else, or say so.
Breaks when  no money is at risk. In a stampede, callers that come back lose their place each time. A caller that
             has used up its retries gets "busy", certainly not applied. The same happens to all callers while a
             holder is paused for longer than the retries last. The database's own queue is fair, this one is not.
Costs        5 round trips if the row is free; 3 for each attempt that met a lock.
Source       PostgreSQL, SELECT: "NOWAIT"; MariaDB likewise (error 1205); Django, `select_for_update(nowait=True)`.
"""

from __future__ import annotations

from typing import ClassVar

from ledger.posting import Applied, Posting
from ledger.strategies.select_for_update import SelectForUpdate
from ledger.strategies.sql import LOCKED, UNHURRIED_HAZARDS, outrun_by
from locks.hazards import Hazard


class RowLockNowait(SelectForUpdate):
    """`select-for-update` that never waits in the database."""

    slug = "row-lock-nowait"
    row_lock_excludes = True
    title = "SELECT … FOR UPDATE NOWAIT, with retries"
    source = "PostgreSQL manual, NOWAIT (F3)"
    guarantees = "no lost update, and no session queues in the database"
    breaks_when = "no money is at risk; a stampede or a paused holder uses up the retries"
    round_trips = "5, and 3 for each attempt that met a lock"
    withstands: ClassVar[frozenset[Hazard]] = UNHURRIED_HAZARDS | {
        Hazard.DEADLOCK,
        Hazard.TRANSACTION_POOLER,
    }
    nowait = True

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        return self.insist(lambda number: self.attempt(posting, number), "each met a locked row")

    def attempt(self, posting: Posting, retries: int = 0) -> Applied:
        with outrun_by(LOCKED):
            return super().attempt(posting, retries)
