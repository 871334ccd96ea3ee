"""Outside parties: what they have done, no rollback takes back.

They are a server of their own, Valkey, so each call is a step: it may come between any two others, and its reply may be
lost. `key`: the provider's idempotency key. With it a second call is answered as the first one was, and does nothing.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


@cache
def client() -> redis.Redis:
    """One for the process, with its pool. A caller hears of a time-out: nothing is sent again behind its back."""
    return redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True, retry=Retry(NoBackoff(), 0))


class Provider:
    """A payment provider: it charges cards, captures, voids and refunds."""

    def charge(self, order: str, amount: int, key: str = "") -> None:
        self._do(f"charge {order} {amount}", key)

    def refund(self, order: str, amount: int, key: str = "") -> None:
        self._do(f"refund {order} {amount}", key)

    def capture(self, order: str) -> None:
        self._do(f"capture {order}")

    def void(self, order: str) -> None:
        self._do(f"void {order}")

    def done(self, what: str) -> int:
        """How often it has done this: `charge A1`."""
        told: list[Any] = [*client().lrange("provider", 0, -1), *client().hvals("provider:keys")]
        return sum(each.startswith(what) for each in told)

    def _do(self, what: str, key: str = "") -> None:
        if key:
            client().hsetnx("provider:keys", key, what)
        else:
            client().rpush("provider", what)


class Mailer:
    """A mail server: what is sent is sent."""

    def send(self, to: str, subject: str) -> None:
        client().rpush("mailer", f"{to}: {subject}")

    def sent(self, to: str) -> int:
        letters: list[Any] = list(client().lrange("mailer", 0, -1))
        return sum(each.startswith(f"{to}: ") for each in letters)


provider, mailer = Provider(), Mailer()
