"""The workload of sellers' files: the import's workers post their lines while the scheduled scan runs."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from ledger.imports.upload import Upload
from loadtest.workloads import Legs, Opening, Workload


class ImportFiles(Workload):
    """`openings`: the accounts of the new books, by default those that the files name."""

    slug = "imports"
    title = "Batch imports and the scheduled scan"
    law = "every posted line is in the balance exactly once"

    def __init__(self, uploads: Sequence[Upload], openings: Iterable[Opening] = (), opening: int = 0) -> None:
        self.uploads = uploads
        self.lines = [line for upload in uploads for line in upload.parsed.good]
        named = sorted({line.account for line in self.lines})
        self._openings = list(openings) or [Opening(account, opening) for account in named]
        self.accounts = len(self._openings)

    def numbers(self) -> list[str]:
        return [each.account for each in self._openings]

    def openings(self) -> list[Opening]:
        return self._openings

    def posting(self, chance: random.Random) -> Legs:
        """Return one of the files' lines, for callers other than the import's workers."""
        line = chance.choice(self.lines)
        return ((line.account, line.amount),)
