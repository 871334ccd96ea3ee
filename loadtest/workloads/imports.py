"""imports: several sellers' files at once, the scheduled scan, and the API's callers: the scenario of A1.

Law: that of the deposits, for all three. A payment that an import's worker overwrote is as lost as any other.

    import worker   read A1 → 100 ………………………………… write 250     (acme's line)
    scheduled scan           read A1 → 100 ……… write 99             (a fee: overwritten)
    API caller                        read A1 → 100 ………… write 130    …

Background workers (ledger/imports) import the files, in other processes than the web server's. So a lock inside one
process, or one that only the API takes, protects nothing. `compare` starts the workers, and starts the import once the
first caller is posting. In Locust's own page this workload is the API's share alone: the files come from the admin.
"""

from __future__ import annotations

from ledger.imports.samples import sample_files
from loadtest.workloads.base import whole
from loadtest.workloads.deposits import Deposits

#: in each of the four files
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
