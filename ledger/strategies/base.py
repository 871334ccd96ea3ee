"""The contract of a strategy: a way to apply a posting, and what protects it."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ledger.models import Book
from ledger.posting import Applied, Busy, Posting, Snapshot
from ledger.stores import Store, store_of
from locks.hazards import Hazard

MAX_THINK = 60.0
#: keywords of locks that the ledger itself gives, or leaves as they are
OURS = {"name", "redis", "redis_nodes", "cache", "sql", "zookeeper", "directory", "on_lost"}


@dataclass(frozen=True, slots=True)
class Settings:
    """How a book's strategy behaves. Times in seconds; None: what the lock's source has published."""

    think: tuple[float, float] = (0.0, 0.005)  # the business's work between read and write
    before: tuple[float, float] = (0.0, 0.0)  # work before the read, where it does no harm
    lease: float | None = None
    poll: float | None = None
    timeout: float | None = None  # how long a caller waits for a lock
    retries: int = 50
    backoff: tuple[float, float] = (0.0, 0.01)
    ordered: bool = (
        True  # locks of one posting in the order of the accounts' numbers, or as the posting has them
    )
    extra: dict[str, Any] = field(default_factory=dict)  # further keywords for a lock

    @classmethod
    def of(cls, values: dict[str, Any]) -> Settings:
        """Check what a client asked for. Raises ValueError that names the wrong setting."""
        known = cls.__dataclass_fields__.keys()
        if unknown := values.keys() - known:
            raise ValueError(f"no setting {', '.join(sorted(unknown))}. Known: {', '.join(known)}")
        checked: dict[str, Any] = dict(values)
        for name in ("think", "before", "backoff"):
            if name in checked:
                checked[name] = _span(name, checked[name])
        for name in ("lease", "poll", "timeout"):
            value = checked.get(name)
            if value is not None and not (isinstance(value, int | float) and 0 < value <= 3600):
                raise ValueError(f"{name}: seconds, above 0 and up to 3600, not {value!r}")
        retries = checked.get("retries", 0)
        if not isinstance(retries, int) or isinstance(retries, bool) or not 0 <= retries <= 10_000:
            raise ValueError(f"retries: a whole number from 0 to 10000, not {retries!r}")
        if not isinstance(checked.get("ordered", True), bool):
            raise ValueError(f"ordered: true or false, not {checked['ordered']!r}")
        _check_extra(checked.get("extra", {}))
        return cls(**checked)

    def lock_keywords(self) -> dict[str, Any]:
        """Return the settings a lock may ask for by keyword."""
        given = {"lease": self.lease, "poll": self.poll}
        return {**self.extra, **{name: value for name, value in given.items() if value is not None}}


def _check_extra(extra: Any) -> None:
    """A request may not choose a lock's servers or files, nor go around the settings that are checked above."""
    if not isinstance(extra, dict):
        raise ValueError("extra: an object of keywords for the lock")
    if own := extra.keys() & Settings.__dataclass_fields__.keys():
        raise ValueError(f"extra: {', '.join(sorted(own))} is a setting of its own")
    if ours := extra.keys() & OURS:
        raise ValueError(f"extra: {', '.join(sorted(ours))} is not for a client to choose")
    for name, value in extra.items():
        word = isinstance(value, str) and value.replace(" ", "").isalpha()
        if not (word or (isinstance(value, int | float) and 0 <= value <= 3600)):
            raise ValueError(f"extra: {name}: a number from 0 to 3600, true, false or a word, not {value!r}")


def _span(name: str, value: Any) -> tuple[float, float]:
    try:
        low, high = value
        span = (float(low), float(high))
    except (TypeError, ValueError):
        raise ValueError(f"{name}: [least, most] seconds, not {value!r}") from None
    if not 0 <= span[0] <= span[1] <= MAX_THINK:
        raise ValueError(f"{name}: 0 ≤ least ≤ most ≤ {MAX_THINK:g} seconds, not {value!r}")
    return span


class Outrun(Exception):
    """Somebody was faster: nothing of this attempt is written, and the next one begins anew."""


class Strategy(ABC):
    """One way to apply postings to the accounts of one book."""

    slug: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str] = ""
    #: one sentence each, for docs/reference.md
    guarantees: ClassVar[str] = ""
    breaks_when: ClassVar[str] = ""
    round_trips: ClassVar[str] = ""
    #: does anything keep two callers apart? Not so in those that are there to lose
    protects: ClassVar[bool] = True
    #: does the write check the fencing number of its lock?
    checks_number: ClassVar[bool] = False
    #: does it ask a server beside the balance for withdrawals only?
    gates_withdrawals: ClassVar[bool] = False
    #: what it talks by, if that is neither a database's client nor Redis's: no gate of the explorer sees it
    talks_by: ClassVar[str] = ""
    #: the claim; the lab measures it
    withstands: ClassVar[frozenset[Hazard]] = frozenset()
    #: an account is one row, and whoever holds its lock keeps this strategy's writers out: a set-based import can
    #: post to its books. Never inherited (ledger/imports/ways.py): a strategy that builds on another says it anew
    row_lock_excludes: ClassVar[bool] = False
    #: where it can keep a balance
    stores: ClassVar[tuple[str, ...]] = ("postgres", "mariadb")

    def __init__(self, book: Book) -> None:
        self.book = book
        self.store: Store = store_of(book)
        self.settings = Settings.of(book.settings)

    @classmethod
    def lay_out(cls, accounts: Iterable[Snapshot]) -> Iterable[Snapshot]:
        """Return the rows in which a fresh book keeps `accounts`: one for each, unless the strategy splits them."""
        return accounts

    @classmethod  # noqa: B027  (most follow whatever is allowed)
    def check(cls, settings: Settings) -> None:
        """Raise ValueError, before a book is opened, for a setting that this strategy cannot follow."""

    @abstractmethod
    def apply(self, posting: Posting) -> Applied:
        """Apply `posting`, or raise: Refused and Busy (certainly not applied), KeyTaken (another request with
        this key came first), anything else (unknown)."""

    def insist(self, attempt: Callable[[int], Applied], met: str) -> Applied:
        """Return what `attempt(number)` returns, and try again while it raises Outrun, up to `retries` times. Raises
        Busy, which says what they all `met`: who gives up does not wait first."""
        for number in range(self.settings.retries):
            try:
                return attempt(number)
            except Outrun:
                self.back_off()
        try:
            return attempt(self.settings.retries)
        except Outrun as error:
            raise Busy(f"{self.settings.retries + 1} attempts {met}") from error

    def order(self, posting: Posting) -> list[str]:
        """Return the posting's accounts in the order in which they are locked. Without one order for everyone
        (`ordered: false`) two transfers in opposite directions deadlock."""
        numbers = dict.fromkeys(posting.accounts)
        return sorted(numbers) if self.settings.ordered else list(numbers)

    def prepare(self) -> None:
        """The work before the read (`before`): it only spreads the callers."""
        _pause(self.settings.before)

    def think(self) -> None:
        """The business's own work, inside the window between read and write (`think`)."""
        _pause(self.settings.think)

    def back_off(self) -> None:
        """Wait a random while before the next attempt, so that two losers do not meet again at once."""
        _pause(self.settings.backoff)


def _pause(span: tuple[float, float]) -> None:
    if span[1] > 0:
        time.sleep(random.uniform(*span))  # noqa: S311  (no secret)
