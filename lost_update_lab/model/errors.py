"""What the explorer cannot vouch for, and what has no end: a schedule, or a search beyond its budget."""

from __future__ import annotations

MORE_TIME = "give it more time: --budget SECONDS"
SHORTER = "shorter leases or polls, or a smaller --work"
REPORT_IT = "a fault of the explorer: please report it, with the strategy"
ON_ONE_HOST = "where workers are processes of one machine: manage.py explore --one-machine, compare, faults"
KEEPS_STATE = (
    "look for state in its module, or in a class: each worker is a process that has just begun, so make that state "
    "anew for each call of the lock"
)
SWALLOWS = "write `except Exception` there: what is no Exception is for whoever ends the thread"
BY_ANOTHER_CLOCK = "none here: `manage.py faults` moves real clocks"
GATE_IT = "put a gate before that client: docs/explorer.md, 'Other clients'"


class Broken(Exception):
    """The explorer cannot vouch for this run. The message says why, and `remedy` says what to do. `trace`: where a
    thread hangs, as a Python traceback."""

    def __init__(self, cause: str, remedy: str = GATE_IT, trace: str = "") -> None:
        super().__init__(cause)
        self.remedy, self.trace = remedy, trace


class Elsewhere(Broken):
    """The system under test uses something that workers on different machines do not share: a file, or a lock of this
    process. The explorer cannot touch it."""

    def __init__(self, cause: str, remedy: str = ON_ONE_HOST, trace: str = "") -> None:
        super().__init__(cause, remedy, trace)


class NotTheSame(Broken):
    """A worker did not do what it was known to do."""

    def __init__(self, what: str) -> None:
        super().__init__(f"not repeatable: {what}. Something outside the gates decides", REPORT_IT)


class LooksAfterAll(Broken):
    """A worker looks at a wall clock, but did not in the runs before the search: clock jumps must be explored too."""

    def __init__(self) -> None:
        super().__init__(
            "a worker looks at a wall clock, and did not in the runs before the search", REPORT_IT
        )


class KeepsState(NotTheSame):
    """A worker was told the same as before, and did something else."""

    def __init__(self, who: str) -> None:
        state = "most likely it keeps state that survives a schedule"
        super().__init__(f"{who} was told the same as before, and does something else: {state}")
        self.remedy = KEEPS_STATE


class Unknown(Exception):
    """This worker (its number) was never told this before at this point. Only its real code knows what it does."""

    def __init__(self, worker: int | None = None) -> None:
        super().__init__()
        self.worker = worker


class Unanswered(Unknown):
    """The server was never asked this before as it stands. Only the real one knows (model/memoised_server.py)."""
