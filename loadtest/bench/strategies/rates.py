"""Postings per second of each strategy and of pgbench. The contenders take turns in each round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ledger.strategies.segmented_balance import SEGMENTS
from loadtest.bench.children import ChildFailed
from loadtest.bench.measured import Row, failed, not_run, ratios, spread
from loadtest.bench.strategies import callers, pgbench
from loadtest.bench.strategies.databases import Turn

CALLERS = 8
WINDOW = 64
LIMIT = "pgbench"
LIMIT_SIMPLE = "pgbench, simple protocol"
LIMIT_SEGMENTS = f"pgbench, {SEGMENTS} rows"  # the rate of segments if the client cost nothing
WINDOWS = f"single-writer, {WINDOW} in flight"
STRATEGIES = (
    "atomic-update",
    "select-for-update-function",
    "select-for-update",
    "optimistic-version",
    "segmented-balance",
    "single-writer",
)
LIMITS = (LIMIT, LIMIT_SIMPLE, LIMIT_SEGMENTS)
GROWING = ("atomic-update", "select-for-update", "optimistic-version", "single-writer")
CONTENDERS = (*LIMITS, *STRATEGIES, WINDOWS)


def one(name: str, accounts: int, seconds: float, processes: int = CALLERS) -> callers.Rate:
    if name in LIMITS:
        protocol = "simple" if name == LIMIT_SIMPLE else "prepared"
        accounts *= SEGMENTS if name == LIMIT_SEGMENTS else 1
        book = callers.fresh_book("atomic-update", accounts)
        return pgbench.rate(book, accounts=accounts, seconds=seconds, clients=processes, protocol=protocol)
    strategy, window = ("single-writer", WINDOW) if name == WINDOWS else (name, 0)
    return callers.rate(strategy, accounts=accounts, seconds=seconds, callers=processes, window=window)


def turned(names: Sequence[str], turn: int, rounds: int) -> Sequence[str]:
    """Return the contenders in a different order for each round, so that none is always the first."""
    first = turn * len(names) // rounds
    return [*names[first:], *names[:first]]


def measure(
    turn: Turn,
    accounts: int,
    rounds: int,
    seconds: float,
    yours: Sequence[str] = (),
    told: Callable[[str], None] = lambda _: None,
) -> Iterator[Row]:
    """Yield a row for each contender: `per_s`, and `ratio`, its rate divided by pgbench's in the same round, unless
    pgbench failed."""
    found: dict[str, list[callers.Rate]] = {name: [] for name in dict.fromkeys((*CONTENDERS, *yours))}
    absent: dict[str, Row] = {}
    for place in range(rounds):
        for name in turned(list(found), place, rounds):
            told(f"{name}, accounts: {accounts}, round {place + 1} of {rounds}")
            try:
                with turn():
                    found[name].append(one(name, accounts, seconds))
            except ChildFailed as error:
                absent.setdefault(name, failed(error))
            except ValueError as error:  # it keeps no accounts on PostgreSQL
                absent.setdefault(name, not_run(error))
    limits = [each.per_s for each in found[LIMIT]]
    for name, rates in found.items():
        about = {"measure": "postings", "strategy": name, "accounts": accounts, "callers": CALLERS}
        if name in absent:
            yield about | absent[name]
            continue
        speeds = [each.per_s for each in rates]
        yield {
            **about,
            "per_s": spread(speeds),
            **({} if LIMIT in absent else {"ratio": ratios(speeds, limits)}),
            "client_us": spread(each.client_us for each in rates),
            "right": all(each.right for each in rates),
        }


def growth(
    turn: Turn,
    accounts: Sequence[int],
    processes: Sequence[int],
    seconds: float,
    told: Callable[[str], None] = lambda _: None,
) -> Iterator[Row]:
    """Yield the rates over the number of accounts (8 callers), and over the number of callers (one account)."""
    points = [("accounts", n, CALLERS) for n in accounts] + [("callers", 1, n) for n in processes]
    for along, of, by in points:
        for name in GROWING:
            told(f"{name}: {of} accounts, {by} callers")
            about = {"measure": "growth", "along": along, "strategy": name, "accounts": of, "callers": by}
            try:
                with turn():
                    got = one(name, of, seconds, by)
            except ChildFailed as error:
                yield about | failed(error)
            else:
                yield about | {"per_s": got.per_s, "right": got.right}
