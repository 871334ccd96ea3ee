"""single-writer: nobody locks anything, because only one process writes. The others ask it.

    A: +10 ──┐ owner: 100 → 110 → 130 in memory; one transaction for both … on disk;   A: 100 → 110   B: 110 → 130
    B: +20 ──┘
    C: −5  ──────────────────────── (gathers while the first group is committed) ── owner: 130 → 125 … C: 130 → 125

Guarantees   no lost update: one process at a time owns a book and applies its postings in the order in which they
             arrive. Every group is committed under the owner's fencing number: an owner that was paused past its
             lease writes nothing after its successor took over. Each caller gets its own result. A request that an
             owner had committed and not answered is recognised by the ids that its caller gave its entries.
Breaks when  no money is at risk. When the owner dies, all callers wait for the rest of its lease, then ask its
             successor. A caller that hears nothing in time does not know, and asks again with the same key. The
             rule must be one that the owner knows (a sum, a floor): business that needs the balance would run in
             the owner, one after the other. A posting over two books would need two owners.
Costs        1 round trip for the caller, to a process and not to a server; for the owner 1 statement and 1 commit
             for all postings that came during the commit before. The only strategy that gets faster per posting
             when the account gets hotter.
Source       the hot-account article's central accounting system (A2); LMAX; H-Store (Stonebraker et al. 2007).

Each process that posts stands ready to own the book; one of them does (ledger/writer/, docs/decisions/0015).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ledger.posting import Applied, Posting, Refused
from ledger.stores import KeyTaken
from ledger.strategies.sql import DATABASE_HAZARDS, SqlStrategy
from ledger.writer import Answer, ask
from ledger.writer.owner import LEASE
from locks.hazards import Hazard

TIMEOUT = 10.0  # seconds that a caller waits for its answer


class SingleWriter(SqlStrategy):
    """Ask the owner of the book, and wait for the answer."""

    slug = "single-writer"
    talks_by = "the socket by which callers ask the owner"
    title = "One writer, in the order of arrival, group commit"
    source = "A2: one system does the accounting; H-Store"
    guarantees = "no lost update: one process writes, in the order of arrival, under a fencing number"
    breaks_when = "no money is at risk; when the owner dies, everyone waits for the end of its lease"
    round_trips = "1 for the caller; 1 and a commit for a group of up to 512"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    stores = ("postgres",)

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        self.think()  # before it is asked for: what the business decides here cannot rest on the balance
        (answer,) = self.ask([posting])
        if answer.word == "refused":
            raise Refused(answer.reason)
        if answer.word == "taken":
            raise KeyTaken(posting.key)
        return Applied(answer.entries)

    def ask(self, postings: Sequence[Posting]) -> list[Answer]:
        """Have several postings applied, each by itself, and return what became of each."""
        return ask(self.book, postings, self.settings.timeout or TIMEOUT, self.settings.lease or LEASE)
