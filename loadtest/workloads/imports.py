"""imports: several sellers' files at once, the scheduled scan, and the API's callers: the scene of A1.

Law: that of the deposits, for all three. A payment that an import's worker overwrote is as gone as any other.

    import worker   read A1 → 100 ………………………………… write 250     (acme's line)
    scheduled scan           read A1 → 100 ……… write 99             (a fee: overwritten)
    API caller                        read A1 → 100 ………… write 130    …

The files are imported by background workers (ledger/imports), who are other processes than the web's: a lock inside
one process, or one that only the API takes, protects nothing. `compare` starts them, and the import when the first
caller is under way. In Locust's own page this is the API's share alone: the files come from the admin.
"""

from __future__ import annotations

from ledger.imports.samples import sample_files
from loadtest.workloads.base import whole
from loadtest.workloads.deposits import Deposits

#: of each file, and there are four
MOST_LINES = 10_000


class Imports(Deposits):
    """Deposits through the API, while the files of four sellers are imported."""

    slug = "imports"
    title = "Imports, the scheduled scan and the API"
    law = "every acknowledged line, fee and deposit is in the balance, once"
    imports_files = True
    turns = None
    options = {**Deposits.options, "lines": "lines in the file of each of the four sellers (50)"}

    def __init__(self, accounts: int = 1, lines: int = 50, most: int = 10_000) -> None:
        """`lines`: of each seller's file."""
        super().__init__(accounts, most)
        self.lines = whole("lines", lines, 1, MOST_LINES)

    def files(self) -> dict[str, bytes]:
        """Return {file name: content}."""
        return sample_files(self.lines, self.accounts)
