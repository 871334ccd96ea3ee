"""Whatever a search without any reduction comes to, the search comes to: each of these programs was missed once.

What counts is the set of ends: what each worker returned, and what the servers hold.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg
import pytest
import redis
import redis.asyncio

from lost_update_lab.model.bounds import SECOND, Fault, Reduction
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.model.system import UNBROKEN, Ending, Judgement
from lost_update_lab.search.search import Search
from tests.lost_update_lab.bank import CONTENTS, Bank
from tests.lost_update_lab.conftest import standing

Program = Callable[[Bank], Any]
DEADLINE = """
local now = tonumber(redis.call('TIME')[1])
return tonumber(redis.call('GET', KEYS[1]) or '0') > now and 0 or 1
"""


class Programs(Bank):
    """Each worker runs its own program. `ends`: all that a search came to."""

    def __init__(self, programs: Sequence[Program], urls: tuple[str, str]) -> None:
        super().__init__(lambda bank, amount: None, *urls)
        self.programs, self.ends = programs, set[object]()

    def work(self, index: int) -> str:
        return repr(self.programs[index](self))

    def judge(self, endings: Sequence[Ending], stuck: bool, contents: Mapping[str, bytes]) -> Judgement:
        told = tuple((each.result, type(each.error), each.crashed, each.waiting) for each in endings)
        self.ends.add((told, stuck, contents["postgres"], contents["redis"]))
        return Judgement(UNBROKEN)


def ends(urls: tuple[str, str], programs: Sequence[Program], **bounds: Any) -> set[object]:
    bank = Programs(programs, urls)
    with standing(bank, urls, CONTENTS, **{"patience": SECOND, **bounds}) as harness:
        result = Search(harness).explore()
    assert (result.cause, result.exhausted) == ("", True)
    return bank.ends


# -- programs -----------------------------------------------------------------------------------------------------


def looks_around_a_command(bank: Bank) -> tuple[bool, bool]:
    """Its clock jumps before the first look, or after it."""
    bank.redis.incr("w")
    first = time.time()
    bank.redis.incr("x")
    bank.redis.incr("y")
    return first > Epoch.shows + 30, time.time() - first > 30


def looks_around_waits(bank: Bank) -> float:
    """How long it has waited depends on when it looked first."""
    first = time.time()
    bank.redis.incr("m")
    time.sleep(1)
    bank.redis.blpop("queue", 5)
    return round(time.time() - first, 3)


def feeds_it(bank: Bank) -> None:
    time.sleep(0.05)
    bank.redis.incr("n")
    time.sleep(2)
    bank.redis.lpush("queue", 1)


def asks_in_a_multi(bank: Bank) -> Any:
    """The script is told the time when it is executed, and not when it is queued."""
    several = bank.redis.pipeline(transaction=True)
    several.eval(DEADLINE, 1, "deadline")
    several.get("done")
    return several.execute()


def sets_a_deadline(bank: Bank) -> None:
    bank.redis.set("deadline", bank.redis.time()[0] + 10)
    time.sleep(20)
    bank.redis.set("done", 1)


def expires_at(bank: Bank) -> Any:
    """That time is over on a server's clock that has jumped."""
    bank.redis.set("key", 1)
    bank.redis.expireat("key", int(time.time()) + 10)
    return bank.redis.get("key")


def reads(bank: Bank) -> Any:
    return bank.redis.get("key")


def reads_in_a_transaction(bank: Bank) -> str:
    """A reply that is lost ends its session, and gives back the row, also if it was that of a read."""
    try:
        with bank.sql.transaction():
            bank.sql.execute("UPDATE account SET balance = 5 WHERE id = 1")
            bank.sql.execute("SELECT balance FROM account WHERE id = 2")
    except psycopg.OperationalError:
        return "broken"
    return "ok"


def looks_for_the_row(bank: Bank) -> Any:
    return bank.sql.execute("SELECT 1 FROM account WHERE id = 1 FOR UPDATE SKIP LOCKED").fetchone()


def reads_and_begins(bank: Bank) -> tuple[Any, str]:
    """Its MULTI begins after a failover, or is cut off by it."""
    before = bank.redis.get("key")
    try:
        several = bank.redis.pipeline(transaction=True)
        several.setnx("lock", 1)
        several.execute()
    except redis.ConnectionError:
        return before, "broken"
    return before, "ok"


def writes(bank: Bank) -> None:
    bank.redis.set("key", 1)


def acts_beside_a_thread(bank: Bank) -> None:
    """It crashes right before it waits, while its thread stands at a command."""
    client = bank.redis
    thread = threading.Thread(target=lambda: client.incr("by the thread"))
    thread.start()
    client.incr("mark")
    thread.join()
    client.incr("end")


def asks_whether_it_lives(bank: Bank) -> bool:
    """A thread may die after somebody has asked."""
    client = bank.redis
    thread = threading.Thread(target=lambda: client.set("by the thread", 1))
    thread.start()
    client.set("mark", 1)
    alive = thread.is_alive()
    thread.join()
    return alive


def asks_whether_it_is_set(bank: Bank) -> bool:
    """A renewal tells so that the lock is lost. When it was asked makes a difference later."""
    client, lost = bank.redis, threading.Event()

    def renews() -> None:
        client.set("by the thread", 1)
        lost.set()

    thread = threading.Thread(target=renews)
    thread.start()
    client.set("mark", 1)
    found = lost.is_set()
    client.set("end", 1)
    thread.join()
    return found


def adds_one_under_the_lock(bank: Bank, read: int | None = None) -> object:
    """`read`: what it has read before, which may be stale."""
    if not bank.redis.set("lock", 1, nx=True):
        return None
    bank.redis.incr("count") if read is None else bank.redis.set("count", read + 1)
    return bank.redis.delete("lock")


def reads_in_a_thread(bank: Bank) -> object:
    """What the thread has read outlives it."""
    client, found = bank.redis, list[object]()
    thread = threading.Thread(target=lambda: found.append(client.get("count")))
    thread.start()
    thread.join()
    return adds_one_under_the_lock(bank, int(str(found[0] or 0)))


def reads_in_a_task(bank: Bank) -> object:
    """So does what a task has read. (`wait_for` makes one.)"""

    async def read() -> int:
        async with redis.asyncio.Redis.from_url(bank.redis_url, decode_responses=True) as client:
            return int(await asyncio.wait_for(client.get("count"), 5) or 0)

    return adds_one_under_the_lock(bank, asyncio.run(read()))


def reads_first(bank: Bank) -> object:
    """It takes the way under the lock only if it does not hear the reply. It may begin late, when a lease has ended."""
    try:
        return bank.redis.get("settings")
    except redis.ConnectionError:
        return adds_one_under_the_lock(bank)


def works_longer_than_its_lease(bank: Bank) -> object:
    if not bank.redis.set("lock", 1, nx=True, px=400):
        return None
    read = int(bank.redis.get("count") or 0)
    time.sleep(1)
    return bank.redis.set("count", read + 1)


def does_nothing(bank: Bank) -> None:
    pass


CASES = {
    "looks before a jump": (Fault.CLOCK_JUMP, looks_around_a_command, does_nothing),
    "looks before a wait": (None, looks_around_waits, feeds_it),
    "asks in a MULTI": (None, asks_in_a_multi, sets_a_deadline),
    "a time that is over": (Fault.CLOCK_JUMP, expires_at, reads),
    "a read's reply is lost": (Fault.LOST_REPLY, reads_in_a_transaction, looks_for_the_row),
    "begins after a failover": (Fault.FAILOVER, reads_and_begins, writes),
    "crashes before it waits": (Fault.CRASH, acts_beside_a_thread, does_nothing),
    "an event is set": (None, asks_whether_it_is_set, does_nothing),
    "a thread has read": (None, adds_one_under_the_lock, reads_in_a_thread),
    "a task has read": (None, adds_one_under_the_lock, reads_in_a_task),
    "a read that comes late": (Fault.LOST_REPLY, reads_first, works_longer_than_its_lease),
    "a thread dies later": (Fault.RENEWAL_DIES, asks_whether_it_lives, does_nothing),
}


@pytest.mark.parametrize("name", CASES)
def test_the_search_comes_to_whatever_there_is(explorer_urls: tuple[str, str], name: str) -> None:
    fault, *programs = CASES[name]
    bounds = {"faults": 1, "kinds": frozenset({fault})} if fault else {"faults": 0}
    found = ends(explorer_urls, programs, **bounds)
    assert ends(explorer_urls, programs, reduction=Reduction.NONE, recorded=False, **bounds) <= found
