"""The contract of a strategy: how it applies a posting, and what protects the posting."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ledger.models import Book
from ledger.posting import Applied, Busy, Posting, Snapshot
from ledger.stores import Store, store_of
from locks.hazards import Hazard

MAX_THINK = 60.0
#: wrong settings that an answer names
MOST_NAMED = 5
#: keywords of locks that only the ledger itself may set
OUR_OPTIONS = {"name", "redis", "redis_nodes", "cache", "sql", "zookeeper", "directory", "on_lost"}


@dataclass(frozen=True, slots=True)
class Settings:
    """How a book's strategy behaves. Times are in seconds. None: the value that the lock's source published."""

    think: tuple[float, float] = (0.0, 0.005)  # business logic between read and write
    before: tuple[float, float] = (0.0, 0.0)  # work before the read, where it is harmless
    lease: float | None = None
    poll: float | None = None
    timeout: float | None = None  # how long a caller waits for a lock
    retries: int = 50
    backoff: tuple[float, float] = (0.0, 0.01)
    ordered: bool = (
        True  # lock a posting's accounts in the order of their numbers, or as the posting lists them
    )
    extra: dict[str, Any] = field(default_factory=dict)  # further keywords for a lock

    @classmethod
    def of(cls, values: dict[str, Any]) -> Settings:
        """Check the settings of a request. Raises ValueError, which names the wrong setting."""
        known = cls.__dataclass_fields__.keys()
        if unknown := values.keys() - known:
            raise ValueError(f"no setting {_some(sorted(unknown))}. Known: {', '.join(known)}")
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
        """Return the settings that a lock can take as keywords."""
        given = {"lease": self.lease, "poll": self.poll}
        return {**self.extra, **{name: value for name, value in given.items() if value is not None}}


def _some(names: Iterable[str]) -> str:
    """Return the first few of these: a request may have thousands, each as long as it likes."""
    listed = [name[:40] for name in names]
    more = f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
    return ", ".join(listed[:MOST_NAMED]) + more


def _check_extra(extra: Any) -> None:
    """A request may neither choose a lock's servers or files nor bypass the settings that are checked above."""
    if not isinstance(extra, dict):
        raise ValueError("extra: an object of keywords for the lock")
    if own := extra.keys() & Settings.__dataclass_fields__.keys():
        raise ValueError(f"extra: {_some(sorted(own))} is a setting of its own")
    if ours := extra.keys() & OUR_OPTIONS:
        raise ValueError(f"extra: {_some(sorted(ours))} is not for a client to choose")
    for name, value in extra.items():
        word = isinstance(value, str) and value.replace(" ", "").isalpha()
        if not (word or (isinstance(value, int | float) and 0 <= value <= 3600)):
            raise ValueError(
                f"extra: {name[:40]}: a number from 0 to 3600, true, false or a word, not {str(value)[:40]!r}"
            )


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
    """Another caller was faster: this attempt has written nothing, and the next one starts from the beginning."""


class Strategy(ABC):
    """One way to apply postings to the accounts of one book."""

    slug: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str] = ""
    #: one sentence each, for docs/reference.md
    guarantees: ClassVar[str] = ""
    breaks_when: ClassVar[str] = ""
    round_trips: ClassVar[str] = ""
    #: does anything keep two callers apart? False for the strategies that exist to lose money
    protects: ClassVar[bool] = True
    #: does the write check the lock's fencing number?
    checks_number: ClassVar[bool] = False
    #: does it ask a second server, and only for withdrawals?
    gates_withdrawals: ClassVar[bool] = False
    #: its channel, if that is neither a database client nor a Redis client: the explorer has no gate for it
    talks_by: ClassVar[str] = ""
    #: the hazards that it claims to survive; the lab measures them
    withstands: ClassVar[frozenset[Hazard]] = frozenset()
    #: the same for accounts on MariaDB, where that is another set. InnoDB ends a wait for a row after
    #: innodb_lock_wait_timeout (50 s): a holder that is paused inside of a transaction for longer keeps others out
    withstands_on_mariadb: ClassVar[frozenset[Hazard] | None] = None
    #: an account is one row, and a lock on that row keeps this strategy's writers out. A set-based import can
    #: therefore post to its books. Never inherited (ledger/imports/ways.py): every subclass has to state it again
    row_lock_excludes: ClassVar[bool] = False
    #: entered around each wait for a lock, so that somebody outside can measure it (ledger/books.py)
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    #: the stores in which it can keep a balance
    stores: ClassVar[tuple[str, ...]] = ("postgres", "mariadb")

    def __init_subclass__(cls, **keywords: Any) -> None:
        """A subclass with claims of its own does not inherit its parent's claims for MariaDB."""
        super().__init_subclass__(**keywords)
        if "withstands" in vars(cls) and "withstands_on_mariadb" not in vars(cls):
            cls.withstands_on_mariadb = None

    def __init__(self, book: Book) -> None:
        self.book = book
        self.store: Store = store_of(book)
        self.settings = Settings.of(book.settings)

    @classmethod
    def claims_on(cls, store: str) -> frozenset[Hazard]:
        """Return what it claims to withstand with its accounts on `store`."""
        other = cls.withstands_on_mariadb if store == "mariadb" else None
        return cls.withstands if other is None else other

    @classmethod
    def lay_out(cls, accounts: Iterable[Snapshot]) -> Iterable[Snapshot]:
        """Return the rows in which a new book keeps `accounts`: one for each, unless the strategy splits them."""
        return accounts

    @classmethod
    def check(cls, settings: Settings) -> None:
        """Raise ValueError for a setting that this strategy does not support, before a book is opened."""
        if settings.extra:
            raise ValueError(f"extra: {cls.slug} takes no lock that could be given {_some(settings.extra)}")

    @abstractmethod
    def apply(self, posting: Posting) -> Applied:
        """Apply `posting`, or raise. Refused and Busy: certainly not applied. KeyTaken: another request with this
        key came first. Anything else: the outcome is unknown."""

    def insist(self, attempt: Callable[[int], Applied], met: str) -> Applied:
        """Return the result of `attempt(number)`, and retry up to `retries` times while it raises Outrun.

        Raises Busy after the last attempt, without another wait. `met` completes its message "3 attempts …".
        """
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
        """Return the posting's accounts in the order in which they are locked. Without one common order
        (`ordered: false`), two transfers in opposite directions deadlock."""
        numbers = dict.fromkeys(posting.accounts)
        return sorted(numbers) if self.settings.ordered else list(numbers)

    def prepare(self) -> None:
        """Work before the read (`before`): it only spreads the callers out."""
        _pause(self.settings.before)

    def think(self) -> None:
        """The business logic, inside the window between read and write (`think`)."""
        _pause(self.settings.think)

    def back_off(self) -> None:
        """Wait for a random time before the next attempt, so that two losers do not collide again at once."""
        _pause(self.settings.backoff)


def _pause(span: tuple[float, float]) -> None:
    if span[1] > 0:
        time.sleep(random.uniform(*span))  # noqa: S311  (not a secret)
