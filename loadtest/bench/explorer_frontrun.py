"""Runs in an environment of its own, without this project: `python explorer_frontrun.py CASE DATABASE REDIS SECONDS`.

Prints as JSON what frontrun says of the case: schedules, seconds, its verdict, whether it could repeat what it
found. Its search has no bound of preemptions, as ours has none; each worker keeps its clients between schedules.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    from explorer_cases import CASES

    name, database, address, seconds = sys.argv[1:5]
    begun = time.perf_counter()
    found = explored(CASES[name], database, address, float(seconds))
    told = {
        "schedules": found.num_explored,
        "seconds": time.perf_counter() - begun,
        "verdict": {True: "kept", False: "lost", None: "inconclusive"}[found.property_holds],
        "replayed": f"{found.reproduction_successes} of {found.reproduction_attempts}",
        "cause": found.inconclusive_reason or "",
    }
    print(json.dumps(told))


def explored(case: Any, database: str, address: str, seconds: float) -> Any:
    import frontrun
    import psycopg
    import redis
    from explorer_cases import AMOUNTS, DEPOSIT, EXPECTED, READ, RESET, SCHEMA

    admin = psycopg.connect(database, autocommit=True)
    admin.execute(SCHEMA)
    admin.execute(DEPOSIT)
    store = redis.Redis.from_url(address)
    clients: list[tuple[Any, Any]] = [
        (psycopg.connect(database, autocommit=True), redis.Redis.from_url(address)) for _ in AMOUNTS
    ]

    def setup() -> None:
        for sql, _ in clients:
            sql.rollback()
        admin.execute(RESET)
        store.flushall()

    def worker(place: int) -> Any:
        return lambda _: case.deposit(*clients[place], AMOUNTS[place])

    return frontrun.explore(
        setup=setup,
        workers=[worker(place) for place in range(len(AMOUNTS))],
        invariant=lambda _: bool(admin.execute(READ).fetchone()[0] == EXPECTED),
        clock="virtual",
        preemption_bound=None,
        stop_on_first=False,
        lock_timeout=2000,
        total_timeout=seconds,
    )


if __name__ == "__main__":
    main()
