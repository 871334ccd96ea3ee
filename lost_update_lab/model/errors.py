"""What the explorer cannot vouch for, and what has no end: a schedule, or a search beyond its budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MORE_TIME = "give it more time: --budget SECONDS"
SHORTER = "shorter leases or polls, or a smaller --work"
LET_IT_SLEEP = (
    "let it sleep between two tries, as by time.sleep(0.01): a loop that never waits has no end here"
)
REPORT_IT = "a fault of the explorer: please report it, with the strategy"
ON_ONE_HOST = "if your workers run on one machine, use manage.py explore --one-machine, compare or faults"
KEEPS_STATE = (
    "look for state in its module, or in a class: each worker is a process that has just begun, so make that state "
    "anew for each call of the lock"
)
ONE_FOR_EACH_PROCESS = (
    "keep it in a variable of the module, or in a class attribute, and fill that at the first call: then each worker "
    "has its own"
)
SWALLOWS = "write `except Exception` there: other BaseExceptions are how a thread is stopped"
IN_THE_COMMAND = (
    "ask for the time in the command itself, and not inside of a domain, a function, a view or a DO block. If a "
    "package does so, let the setup replace that by one that does not ask"
)
BY_ANOTHER_CLOCK = (
    "for the trial, do without it: wait by time.sleep, take the time in the command (now()), and set no limit. Of the "
    "lab's own locks, `manage.py faults` moves real clocks"
)
GATE_IT = "put a gate before that client: docs/explorer.md, 'Other clients'"
WHAT_ELSE = (
    "look for what else decides in that code: a time, a random number or a setting that passes no gate. If there is "
    "nothing, it is a fault of the explorer: please report it, with the strategy"
)
ITS_OWN_THREADS = "let the worker start the threads that send for it, after its operation has begun"
IT_COUNTS = (
    "leave track_counts on, as it is by default: the explorer uses its counters to find changed tables"
)
BY_PLAIN_TEXT = "explore with an address without TLS (redis://), and send short messages"
ONE_BY_ONE = "send the commands of the procedure one by one"
IN_ONE_PHASE = (
    "for the trial, send COMMIT in place of PREPARE TRANSACTION, and nothing in place of COMMIT PREPARED"
)
WITHOUT_CHAIN = "send COMMIT, or ROLLBACK, and then BEGIN"
LIMITS_OUTSIDE = "let the operation set that limit before it calls the function: SET LOCAL lock_timeout"
STATEMENTS_APART = "send the statements of that function one by one, in one transaction"
ENDS_ITS_TRANSACTION = (
    "let what has opened that transaction commit, and close its connection: an invariant, the setup"
)
IN_A_TRANSACTION = "send both commands inside of one transaction"
LOOKS_BY_ITSELF = (
    "send the look as a SELECT of its own, in the same transaction: what comes between the two is explored"
)
LOOK_AGAIN = (
    "take the advisory lock in a command of its own, and look at the row then (or FOR UPDATE SKIP LOCKED)"
)
BY_A_LOOK = (
    "leave that loop out of the operation, and explore what comes after a notification. If a missed one must do no "
    "harm, let it poll the rows as well"
)
CHOOSE_BEFORE = (
    "hand the operation what is chosen, as an argument, and explore it twice: with the same choice for both workers, "
    "and with different ones"
)
IN_THE_SETUP = "make it in the setup, or in a migration, before any worker begins"
BY_EXECUTE = "send these commands one by one, by execute()"
WITHOUT_COPY = (
    "send what a pipeline sends, or COPY copies, by execute(): for COPY FROM, an INSERT with all rows"
)
IN_ONE_DATABASE = (
    "for the trial, let the setup make these tables in the database that the explorer has, and give all connections "
    "its address"
)
THE_SERVERS = (
    "let it use the servers that it is handed; another one has to be given to the explorer, with a gate"
)


class Broken(Exception):
    """The explorer cannot vouch for this run. The message says why, and `remedy` says what to do: one that fits the
    cause. `trace`: where a thread hangs, as a Python traceback."""

    def __init__(self, cause: str, remedy: str, trace: str = "") -> None:
        super().__init__(cause)
        self.remedy, self.trace = remedy, trace


class Elsewhere(Broken):
    """The system under test uses something that workers on different machines do not share: a file, or a lock of this
    process. The explorer cannot touch it. What the search saw until then (`seen`: the figures of its result) proves
    nothing: two workers may have been inside together only because they share no file here."""

    def __init__(self, cause: str, remedy: str = ON_ONE_HOST, trace: str = "") -> None:
        super().__init__(cause, remedy, trace)
        self.seen: Mapping[str, Any] = {}

    @property
    def before(self) -> str:
        """What was seen until then, in a sentence. "": nothing."""
        if not self.seen.get("schedules"):
            return ""
        words = ", ".join(f"{count} {word}" for word, count in sorted(self.seen["words"].items()))
        came = f" ({words})" if words else ""
        return f"until then {self.seen['schedules']} schedules were executed{came}, which prove nothing"


class NotTheSame(Broken):
    """A worker did not do what it was known to do."""

    def __init__(self, what: str) -> None:
        super().__init__(f"not repeatable: {what}. Something outside the gates decides", WHAT_ELSE)


class LooksAfterAll(Broken):
    """A worker looks at a wall clock, but did not in the runs before the search: clock jumps must be explored too."""

    def __init__(self) -> None:
        super().__init__(
            "a worker looks at a wall clock, and did not in the runs before the search", REPORT_IT
        )


class BeginsAgain(Broken):
    """Something is known now that the search has to know from its beginning."""


class CountsItsTries(BeginsAgain):
    """A waiter gives up by itself. So how often it has polled in vain is a part of the state."""

    def __init__(self) -> None:
        super().__init__("a waiter gives up by itself, and did not in the runs before the search", REPORT_IT)


class AnotherFile(BeginsAgain):
    """A worker touches a file that none has touched before: from now on, looking at it is a step."""

    def __init__(self) -> None:
        super().__init__("a worker touches a file that none had touched before", REPORT_IT)


class ClockInside(Broken):
    """The server's own clock decides where no command shows it: a time is compared that a DEFAULT or a trigger has
    written, or a function, a view, a policy or a check asks for one. Whoever explores the database may let that go by
    the virtual clock, and begin again. `with_another`: it is compared with another such time, so that no two of them
    may be the same."""

    def __init__(self, by: str, text: str, with_another: bool = False) -> None:
        """`by`: what tells the time in this command: a column, a table, a view, a function."""
        self.with_another = with_another
        super().__init__(
            f"the server's own clock decides there, and the explorer cannot move it (inside of {by}, in {text[:80]})",
            IN_THE_COMMAND,
        )


class ClockDecides(BeginsAgain):
    """The first command is seen in which the clock of this server decides. From now on it is virtual."""

    def __init__(self, server: str) -> None:
        super().__init__(f"the clock of {server} decides", REPORT_IT)


class WritesByReading(BeginsAgain):
    """The first command is seen to which it makes a difference that a write outside of a transaction is under way
    (servers/compound.py). From now on each such write is a transaction: it is executed, and then it commits."""

    def __init__(self) -> None:
        super().__init__("a write outside of a transaction may be under way", REPORT_IT)


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
