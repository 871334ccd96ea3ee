"""Runs in an environment of its own, without this project: `python frontrun_program.py CASE DATABASE REDIS SECONDS`.

It prints frontrun's result as JSON: schedules, seconds of the search alone, the verdict. A second line also says
whether frontrun could repeat its finding. Like ours, its search has no bound on preemptions, and each worker keeps
its clients between schedules.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from typing import Any

REPLAYS = 10


def main() -> None:
    from cases import CASES  # beside this file: Python searches a program's own folder first

    name, database, address, seconds = sys.argv[1:5]
    explore = explorer(CASES[name], database, address, float(seconds))
    begun = time.perf_counter()
    found = explore(stop_on_first=False, reproduce_on_failure=0)
    told = {
        "schedules": found.num_explored,
        "seconds": time.perf_counter() - begun,
        "verdict": {True: "kept", False: "lost", None: "inconclusive"}[found.property_holds],
        "cause": found.inconclusive_reason or "",
    }
    print(json.dumps(told), flush=True)
    if found.property_holds is False:  # our replays are not part of the search either
        again = explore(stop_on_first=True, reproduce_on_failure=REPLAYS)
        told["replayed"] = f"{again.reproduction_successes} of {again.reproduction_attempts}"
        print(json.dumps(told), flush=True)


def explorer(case: Any, database: str, address: str, seconds: float) -> Any:
    """Return frontrun's search of the case. Everything is connected, and the schema exists."""
    import frontrun
    import psycopg
    import redis
    from cases import DEPOSIT, READ, RESET, SCHEMA

    admin = psycopg.connect(database, autocommit=True)
    admin.execute(SCHEMA)
    admin.execute(DEPOSIT)
    store = redis.Redis.from_url(address)
    clients: list[tuple[Any, Any]] = [
        (psycopg.connect(database, autocommit=True), redis.Redis.from_url(address)) for _ in case.amounts
    ]

    def setup() -> None:
        for sql, _ in clients:
            sql.rollback()
        admin.execute(RESET)
        store.flushall()

    def worker(place: int) -> Any:
        return lambda _: case.work(*clients[place], place)

    return partial(
        frontrun.explore,
        setup=setup,
        workers=[worker(place) for place in range(len(case.amounts))],
        invariant=lambda _: admin.execute(READ).fetchone() == (case.expected,),
        clock="virtual",
        preemption_bound=None,
        lock_timeout=2000,
        total_timeout=seconds,
    )


if __name__ == "__main__":
    main()
