"""The ordered queue in Redis between the callers and the owner of a book.

    ledger:{book}:queue            list of orders, the oldest first; an order is one caller's window of requests
    ledger:{book}:queue:owner      the fencing number of the owner that reads it
    ledger:{book}:queue:reply:R    the answer to the order R, a list of one

The owner reads the head, commits, answers, and only then takes the orders off. Whoever dies in between leaves
them to the successor, who recognises by their keys those that were committed. What the queue forgets (a restart,
a failover) was not answered: its callers ask again with the same key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import count
from secrets import token_hex
from typing import NamedTuple
from uuid import UUID, uuid4

from redis import Redis
from redis.exceptions import NoScriptError

from ledger.models import Book
from ledger.posting import Posting, Stored, worker
from ledger.writer import direct
from locks.server import LuaScript

ANSWER = LuaScript("answer.lua", package=__package__)
EXPIRY = 60_000  # milliseconds that an answer waits for a caller who may be gone


class Request(NamedTuple):
    """One posting on its way to the owner. `lines`: account, amount, and the id that its entry will have."""

    key: str
    fingerprint: str
    lines: list[tuple[str, int, str]]


class Order(NamedTuple):
    """What one caller asked for at once: in the queue one element, answered as one."""

    reply_to: str
    worker: str
    requests: list[Request]

    @classmethod
    def read(cls, packed: bytes) -> Order:
        reply_to, worker, requests = json.loads(packed)
        return cls(reply_to, worker, [Request(*each) for each in requests])


class Answer(NamedTuple):
    """What became of a request: `stored` entries, or why it was `refused`, or its key was `taken`."""

    word: str
    about: list[tuple[str, str, int, int, int]] | str = ""

    @property
    def entries(self) -> tuple[Stored, ...]:
        return tuple(Stored(UUID(entry[0]), *entry[1:]) for entry in self.about)  # type: ignore[arg-type]


class Queue:
    """One book's queue."""

    def __init__(self, redis: Redis, book: Book) -> None:
        self.redis = redis
        self.name = f"ledger:{{{book.pk}}}:queue"
        self.owner = f"{self.name}:owner"

    # -- a caller's side ----------------------------------------------------------------------------------

    def ask(self, postings: Sequence[Posting], timeout: float) -> list[Answer]:
        """Put `postings` in the queue, all in one command, and wait for the answers, in their order.

        Raises TimeoutError when some are missing after `timeout` seconds: whether they were applied is unknown.
        """
        reply_to = f"{self.name}:reply:{uuid4().hex}"
        order = json.dumps((reply_to, worker(), _requests(postings)))
        _, answered = direct.ask(self.redis, ("RPUSH", self.name, order), ("BLPOP", reply_to, timeout))
        if not answered:
            raise TimeoutError(
                f"the owner of the book did not answer within {timeout:g} s: ask again with the same key"
            )
        return [Answer(*each) for each in json.loads(answered[1])]

    # -- the owner's side ---------------------------------------------------------------------------------

    def own(self, fence: int) -> None:
        """Say who reads the queue from now on."""
        self.redis.set(self.owner, fence)

    def head(self, most: int, timeout: float) -> list[Order]:
        """Return the oldest orders and leave them there; wait up to `timeout` seconds for the first.

        `most`: requests; one order alone may have more.
        """
        _, found = direct.ask(
            self.redis,
            ("BLMOVE", self.name, self.name, "LEFT", "LEFT", timeout),  # waits; the head stays the head
            ("LRANGE", self.name, 0, most - 1),
        )
        return _up_to(most, found)

    def answer(
        self, fence: int, orders: Sequence[Order], answers: Iterable[Sequence[Answer]], most: int = 1
    ) -> list[Order]:
        """Answer the oldest orders and take them off; return the next ones, as `head` does, without waiting."""
        keys = [self.name, self.owner, *(order.reply_to for order in orders)]
        packed = [json.dumps(each) for each in answers]
        given = [fence, EXPIRY, most, *packed]
        try:
            (left,) = direct.ask(self.redis, ("EVALSHA", ANSWER.sha, len(keys), *keys, *given))
        except NoScriptError:  # restarted, or failed over
            left = ANSWER(self.redis, keys, given)
        return _up_to(most, left or [])


def _up_to(most: int, packed: Iterable[bytes]) -> list[Order]:
    orders: list[Order] = []
    for each in packed:
        order = Order.read(each)
        most -= len(order.requests)
        if most < 0 and orders:
            break
        orders.append(order)
    return orders


def _requests(postings: Sequence[Posting]) -> list[Request]:
    """The ids of a window's entries are neighbours in the primary key's index: 12 random bytes and a number."""
    window, numbers = token_hex(12), count()
    return [
        Request(
            p.key,
            p.fingerprint,
            [(line.account, line.amount, f"{window}{next(numbers):08x}") for line in p.lines],
        )
        for p in postings
    ]
