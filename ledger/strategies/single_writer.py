"""single-writer: nothing is locked, because only one process writes. The other processes send it their postings.

    A: +10 ──┐ owner: 100 → 110 → 130 in memory; one transaction for both … on disk;   A: 100 → 110   B: 110 → 130
    B: +20 ──┘
    C: −5  ──────────────────────── (gathers while the first group is committed) ── owner: 130 → 125 … C: 130 → 125

Guarantees   no lost update: one process at a time owns a book and applies its postings in the order in which they
             arrive. Every group is committed under the owner's fencing number, so an owner that was paused past its
             lease writes nothing after its successor took over. Each caller gets its own result. If an owner
             committed a request but did not answer, its successor recognises the request by the entry ids that the
             caller chose.
Breaks when  no money is at risk. When the owner dies, all callers wait for the rest of its lease, then ask its
             successor. A caller that gets no answer in time does not know the outcome, and asks again with the same
             key. The rule must be one that the owner knows (a sum, a floor). Business logic that needs the balance
             would have to run in the owner, one posting after the other. A posting over two books would need two
             owners.
Costs        1 round trip for the caller, to a process and not to a server. For the owner, 1 statement and 1 commit
             for all postings that arrived during the previous commit. It is the only strategy whose cost per
             posting falls as the account gets hotter.
Source       the hot-account article's central accounting system (A2); LMAX; H-Store (Stonebraker et al. 2007).

Every process that posts can become the owner of the book, and one of them is (ledger/writer/, docs/decisions/0015).
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
    talks_by = "the socket on which callers ask the owner"
    title = "One writer, order of arrival, group commit"
    source = "A2: one system does the accounting; H-Store"
    guarantees = "no lost update: one process writes, in the order of arrival, under a fencing number"
    breaks_when = "no money is at risk; when the owner dies, all callers wait for the end of its lease"
    round_trips = "1 for the caller; 1 and a commit for a group of up to 512"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    stores = ("postgres",)

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        self.think()  # before the request: a decision made here cannot depend on the balance
        (answer,) = self.ask([posting])
        if answer.word == "refused":
            raise Refused(answer.reason)
        if answer.word == "taken":
            raise KeyTaken(posting.key)
        return Applied(answer.entries)

    def ask(self, postings: Sequence[Posting]) -> list[Answer]:
        """Let the owner apply several postings, each by itself, and return their outcomes."""
        return ask(self.book, postings, self.settings.timeout or TIMEOUT, self.settings.lease or LEASE)
