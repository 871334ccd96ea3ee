"""Postings a second of each strategy and of pgbench, in turns, round after round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from loadtest.bench import callers, pgbench
from loadtest.bench.spread import spread

Row = dict[str, Any]
CALLERS = 8
WINDOW = 64
LIMIT = "pgbench"
LIMIT_SIMPLE = "pgbench, simple protocol"
WINDOWS = f"single-writer, {WINDOW} in flight"
STRATEGIES = (
    "atomic-update",
    "select-for-update-function",
    "select-for-update",
    "optimistic-version",
    "segmented-balance",
    "single-writer",
)
CONTENDERS = (LIMIT, LIMIT_SIMPLE, *STRATEGIES, WINDOWS)


def one(name: str, accounts: int, seconds: float, processes: int = CALLERS) -> callers.Rate:
    if name in (LIMIT, LIMIT_SIMPLE):
        protocol = "prepared" if name == LIMIT else "simple"
        book = callers.fresh_book("atomic-update", accounts)
        per_s = pgbench.rate(book, accounts=accounts, seconds=seconds, clients=processes, protocol=protocol)
        return callers.Rate(per_s, True)
    strategy, window = ("single-writer", WINDOW) if name == WINDOWS else (name, 0)
    return callers.rate(strategy, accounts=accounts, seconds=seconds, callers=processes, window=window)


def measure(
    accounts: int, rounds: int, seconds: float, told: Callable[[str], None] = lambda _: None
) -> Iterator[Row]:
    """Yield a row for each contender: `per_s`, and `ratio`, its rate for each posting of pgbench in that round."""
    found: dict[str, list[callers.Rate]] = {name: [] for name in CONTENDERS}
    for turn in range(rounds):
        for name in CONTENDERS:
            told(f"{name}, accounts: {accounts}, round {turn + 1} of {rounds}")
            found[name].append(one(name, accounts, seconds))
    limits = [each.per_s for each in found[LIMIT]]
    for name, rates in found.items():
        yield {
            "measure": "postings",
            "strategy": name,
            "accounts": accounts,
            "callers": CALLERS,
            "per_s": spread(each.per_s for each in rates),
            "ratio": spread(each.per_s / limit for each, limit in zip(rates, limits, strict=True)),
            "right": all(each.right for each in rates),
        }


def growth(
    accounts: Sequence[int],
    processes: Sequence[int],
    seconds: float,
    told: Callable[[str], None] = lambda _: None,
) -> Iterator[Row]:
    """Yield the rates over the number of accounts (8 callers), and over that of callers (one account)."""
    points = [("accounts", n, CALLERS) for n in accounts] + [("callers", 1, n) for n in processes]
    for along, of, by in points:
        for name in ("atomic-update", "select-for-update", "optimistic-version"):
            told(f"{name}: {of} accounts, {by} callers")
            got = one(name, of, seconds, by)
            yield {
                "measure": "growth",
                "along": along,
                "strategy": name,
                "accounts": of,
                "callers": by,
                "per_s": got.per_s,
                "right": got.right,
            }
