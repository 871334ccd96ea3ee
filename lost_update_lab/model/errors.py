"""What the explorer cannot vouch for, and what has no end: a schedule, or a search beyond its budget."""

from __future__ import annotations

MORE_TIME = "give it more time: --budget SECONDS"
SHORTER = "shorter leases or polls, or a smaller --work"
REPORT_IT = "a fault of the explorer: please report it, with the strategy"
GATE_IT = "put a gate before that client: docs/explorer.md, 'Other clients'"


class Broken(Exception):
    """The explorer cannot vouch for this run. The message says why, `remedy` what to do."""

    def __init__(self, cause: str, remedy: str = GATE_IT) -> None:
        super().__init__(cause)
        self.remedy = remedy


class NotTheSame(Broken):
    """What was known did not come again."""

    def __init__(self, what: str) -> None:
        super().__init__(f"not repeatable: {what}. Something outside the gates decides")


class Unknown(Exception):
    """This worker (its number) was never told this before, at this point: only its real code knows what it does."""

    def __init__(self, worker: int | None = None) -> None:
        super().__init__()
        self.worker = worker


class Unanswered(Unknown):
    """No server was asked this before, as it stands: only the real one knows (model/server_memory.py)."""
