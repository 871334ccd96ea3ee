"""The ordered queue in Redis between the callers and the owner of a book.

    ledger:{book}:queue            list of requests, the oldest first
    ledger:{book}:queue:owner      the fencing number of the owner that reads it
    ledger:{book}:queue:reply:R    list of answers that the caller R waits for

The owner reads the head, commits, answers, and only then takes the requests off. Whoever dies in between leaves
them to the successor, who recognises by their keys those that were committed. What the queue forgets (a restart,
a failover) was not answered: its callers ask again with the same key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID, uuid4

from redis import Redis

from ledger.models import Book
from ledger.posting import Posting, Stored, worker
from locks.server import LuaScript

TRIM = LuaScript("trim.lua", package=__package__)
EXPIRY = 60_000  # milliseconds that an answer waits for a caller who may be gone


class Request(NamedTuple):
    """One posting on its way to the owner. `lines`: account, amount, and the id that its entry will have."""

    reply_to: str
    key: str
    fingerprint: str
    worker: str
    lines: list[tuple[str, int, str]]


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
        me = worker()
        requests = [
            json.dumps(
                Request(reply_to, p.key, p.fingerprint, me, [(*_line, uuid4().hex) for _line in _lines(p)])
            )
            for p in postings
        ]
        with self.redis.pipeline(transaction=False) as pipe:
            pipe.rpush(self.name, *requests)
            pipe.blmpop(timeout, 1, reply_to, direction="LEFT", count=len(requests))
            _, popped = pipe.execute()
        answers: list[bytes] = []
        while popped:
            answers += popped[1]
            if len(answers) == len(requests):
                return [Answer(*json.loads(answer)) for answer in answers]
            popped = self.redis.blmpop(timeout, 1, reply_to, direction="LEFT", count=len(requests))
        raise TimeoutError(
            f"the owner of the book did not answer within {timeout:g} s: ask again with the same key"
        )

    # -- the owner's side ---------------------------------------------------------------------------------

    def own(self, fence: int) -> None:
        """Say who reads the queue from now on."""
        self.redis.set(self.owner, fence)

    def head(self, most: int, timeout: float) -> list[Request]:
        """Return the oldest requests and leave them there; wait up to `timeout` seconds for the first."""
        found = self.redis.lrange(self.name, 0, most - 1)
        if not found and self.redis.blmove(self.name, self.name, timeout, "LEFT", "LEFT"):
            found = self.redis.lrange(self.name, 0, most - 1)
        return [Request(*json.loads(each)) for each in found]

    def answer(self, fence: int, requests: Sequence[Request], answers: Iterable[Answer]) -> None:
        """Answer the oldest requests and take them off."""
        replies: dict[str, list[str]] = {}
        for request, answer in zip(requests, answers, strict=True):
            replies.setdefault(request.reply_to, []).append(json.dumps(answer))
        with self.redis.pipeline(transaction=False) as pipe:
            for reply_to, lines in replies.items():
                pipe.rpush(reply_to, *lines)
                pipe.pexpire(reply_to, EXPIRY)
            pipe.execute()
        TRIM(self.redis, [self.name, self.owner], [fence, len(requests)])


def _lines(posting: Posting) -> Iterable[tuple[str, int]]:
    return ((line.account, line.amount) for line in posting.lines)
