"""row-lock-nowait: lock the row or hear at once that somebody else has it; then try again later.

    A: BEGIN; SELECT … FOR UPDATE NOWAIT → 100
    B:                  BEGIN; SELECT … FOR UPDATE NOWAIT → error 55P03; ROLLBACK; wait a random while
    A: UPDATE balance = 110; INSERT entry; COMMIT
    B:                  BEGIN; SELECT … FOR UPDATE NOWAIT → 110 …

Guarantees   no lost update, as `select-for-update`; and no session of the database stands in a queue: a caller
             that does not get in can do something else, or say so.
Breaks when  no money is at risk. In a stampede, callers that come back lose their place each time. A caller that
             has used up its retries gets "busy", certainly not applied. So does everyone while a holder is paused for
             longer than the retries last. The database's own queue is fair, this is not.
Costs        5 round trips when it is free; 3 for each attempt that met a lock.
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
    guarantees = "no lost update, and no session that queues in the database"
    breaks_when = "no money is at risk; a stampede or a paused holder uses up the retries"
    round_trips = "5, and 3 for each attempt that met a lock"
    withstands: ClassVar[frozenset[Hazard]] = UNHURRIED_HAZARDS | {Hazard.DEADLOCK}
    nowait = True

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        return self.insist(lambda number: self.attempt(posting, number), "met a locked row each")

    def attempt(self, posting: Posting, retries: int = 0) -> Applied:
        with outrun_by(LOCKED):
            return super().attempt(posting, retries)
