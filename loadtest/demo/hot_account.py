"""`python -m loadtest.demo.hot_account`: the experiment of the hot-account article (A9), as its code has it.

    pool-1-thread-3 : sleep 1 to 100 ms, GET user_001 → 0, log "amount: 1", SET user_001 1
    pool-1-thread-7 : sleep 1 to 100 ms, GET user_001 → 1, log "amount: 2", SET user_001 2   … ten tasks in all

The article prints 5 of 10, and a log of the threads 1 to 5. With the pool of 10 in its code each of the ten tasks gets
a thread of its own: Java's fixed pool starts a new thread for each task until it has its number. So the log must have
come from a pool of 5 at most. The sleep stands before the read, and between read and write there is one line of
logging. So the money is lost only when two threads wake within that moment.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from redis import Redis

from loadtest.commandline import program
from loadtest.servers import Valkey

ACCOUNT = "user_001"
TASKS = 10


@dataclass
class Experiment:
    """One run of it. `log`: the thread's name and the amount of each line, in the order of the lines."""

    redis: Redis
    pool: int = 10
    between: Callable[[], object] = lambda: None  # what else happens between read and write
    log: list[tuple[str, int]] = field(default_factory=list)

    def run(self) -> int:
        """Return the amount that is there when all ten have added 1."""
        self.redis.set(ACCOUNT, _account(0))
        tasks: SimpleQueue[int] = SimpleQueue()
        for task in range(self.pool, TASKS):
            tasks.put(task)
        names = [f"pool-1-thread-{number}" for number in range(1, min(self.pool, TASKS) + 1)]
        threads = [threading.Thread(target=self._works_off, args=(tasks,), name=name) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return _amount(self.redis)

    def _works_off(self, tasks: SimpleQueue[int]) -> None:
        """Do the task that the thread was started for, then others that wait."""
        while True:
            self._no_lock()
            try:
                tasks.get_nowait()
            except Empty:
                return

    def _no_lock(self) -> None:
        time.sleep(random.randint(1, 100) / 1000)  # noqa: S311
        amount = _amount(self.redis) + 1
        self.log.append((threading.current_thread().name, amount))
        self.between()
        self.redis.set(ACCOUNT, _account(amount))


def _account(amount: int) -> str:
    return json.dumps({"userId": ACCOUNT, "amount": amount})


def _amount(redis: Redis) -> int:
    return int(json.loads(redis.get(ACCOUNT) or b"")["amount"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m loadtest.demo.hot_account", description=__doc__)
    parser.add_argument("--pool", type=int, default=10, choices=range(1, 11), metavar="1..10")
    parser.add_argument("--runs", type=int, default=20)
    asked = parser.parse_args()
    with Valkey() as server, server.client() as redis:
        finals = Counter(Experiment(redis, asked.pool).run() for _ in range(asked.runs))
    lost = sum(count for final, count in finals.items() if final < TASKS)
    print(f"pool of {asked.pool}, {asked.runs} runs: money lost in {lost}")
    for final, count in sorted(finals.items()):
        print(f"  {final:>2} of {TASKS}: {count} ×")
    return 0


if __name__ == "__main__":
    sys.exit(program.run(main))
