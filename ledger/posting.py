"""The data of a posting: the request, what a writer read, what it is about to write, and the result."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted

from django.utils import timezone
from msgspec import Struct

BIGINT = 2**63 - 1
DIGITS = 32  # of a fingerprint: 128 bits. More would make each entry longer and no comparison safer
_HOST = socket.gethostname()


class Refused(Exception):
    """The business says no (below the floor, beyond BIGINT, unknown account): certainly not applied."""


class Busy(Exception):
    """The strategy gave up (lock not granted in time, retries used up): certainly not applied."""


class NotConfigured(Busy):
    """This process has no server for the book's store: certainly not applied, and nothing can be read either."""

    def __init__(self, store: str) -> None:
        remedy = f"start one with `python manage.py servers up --all`, or set {store.upper()}_URL"
        super().__init__(f"no server for {store} is configured here: {remedy}")


# Line, Posting and Stored are created for each posting: a Struct takes a fraction of the time of a frozen dataclass.
# None of them can be part of a cycle: gc=False.
class Line(Struct, frozen=True, gc=False, array_like=True):  # array_like: the single writer's wire format
    """One account's part of a posting. `amount`: in minor units, signed."""

    account: str
    amount: int


class Posting(Struct, frozen=True, gc=False):
    """One requested change of one or more accounts. `key` makes it idempotent."""

    key: str
    lines: tuple[Line, ...]
    description: str = ""

    @property
    def accounts(self) -> tuple[str, ...]:
        return tuple(line.account for line in self.lines)

    @property
    def fingerprint(self) -> str:
        """Hash of the request: see `fits`."""
        # the output of json.dumps, in a third of the time
        if len(self.lines) == 1:
            (line,) = self.lines
            body = f"[[{quoted(line.account)}, {line.amount}], {quoted(self.description)}]"
            return hashed(body)
        parts = [f"[{quoted(line.account)}, {line.amount}]" for line in self.lines]
        body = f"[{', '.join([*parts, quoted(self.description)])}]"
        return hashed(body)

    def fits(self, fingerprint: str) -> bool:
        """Was the key used for this same request? If not, the request is refused. Old entries may have 64 digits."""
        return fingerprint[:DIGITS] == self.fingerprint


def hashed(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:DIGITS]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a writer read from an account, and when."""

    pk: int | str
    number: str
    balance: int
    version: int
    head: uuid.UUID | None
    floor: int | None = None
    read_at: datetime = field(default_factory=timezone.now)


@dataclass(frozen=True, slots=True)
class Change:
    """What a writer is about to write: the account's next balance, and the entry that explains it."""

    before: Snapshot
    amount: int
    after: int
    key: str
    fingerprint: str
    entry: uuid.UUID = field(default_factory=uuid.uuid4)


class Stored(Struct, frozen=True, gc=False):
    """One entry, as returned to the caller of the posting."""

    entry: uuid.UUID
    account: str
    amount: int
    balance_before: int
    balance_after: int


@dataclass(frozen=True, slots=True)
class Applied:
    """A posting that is in the books. `retries`: how many attempts beyond the first the strategy needed."""

    entries: tuple[Stored, ...]
    retries: int = 0
    replayed: bool = False
    warning: str = ""


def worker() -> str:
    """Return the name of this worker: `host:process:thread`."""
    return _worker(os.getpid(), threading.current_thread().name)


@lru_cache(maxsize=1000)  # threads
def _worker(process: int, thread: str) -> str:
    thread = thread.replace("ThreadPoolExecutor-", "thread-").replace("MainThread", "main")
    return f"{_HOST}:{process}:{thread}"[:100]


def compute(posting: Posting, read: dict[str, Snapshot]) -> list[Change]:
    """Return the next balance of each of the posting's accounts, computed from what was `read`.

    Raises Refused if a balance would fall below the account's floor or leave the range of BIGINT.
    """
    changes = []
    for line in posting.lines:
        before = read[line.account]
        after = before.balance + line.amount
        if line.amount < 0 and before.floor is not None and after < before.floor:
            raise Refused(
                f"account {line.account} has {before.balance}: {line.amount} would break {before.floor}"
            )
        if abs(after) > BIGINT:
            raise Refused(
                f"account {line.account}: {before.balance} {line.amount:+d} leaves the range of BIGINT"
            )
        changes.append(Change(before, line.amount, after, posting.key, posting.fingerprint))
    return changes


def applied(changes: list[Change], retries: int = 0) -> Applied:
    """Return the answer for committed `changes`."""
    return Applied(
        tuple(Stored(c.entry, c.before.number, c.amount, c.before.balance, c.after) for c in changes), retries
    )
