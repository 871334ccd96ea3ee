"""A case of `explorer_cases.py` as a subject of the explorer."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import Any

import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from loadtest.bench.explorer_cases import AMOUNTS, READ, RESET, SCHEMA, Case
from loadtest.explorer.subject import UNBROKEN, Ending, Judgement

CONTENTS = "SELECT id, balance FROM account ORDER BY id"
OPENING = 100


class CaseSubject:
    """Each worker keeps its own clients from schedule to schedule."""

    def __init__(self, case: Case, database: str, redis_url: str) -> None:
        self.name, self.case, self.database, self.redis_url = case.name, case, database, redis_url
        self.admin = psycopg.connect(database, autocommit=True)
        self.admin.execute(SCHEMA)
        self.store = redis.Redis.from_url(redis_url)
        self.own = threading.local()

    def reset(self, changed: Collection[str]) -> None:
        if "postgres" in changed:
            self.admin.execute(RESET)
        if "redis" in changed:
            self.store.flushall()

    def work(self, index: int) -> str:
        if not hasattr(self.own, "sql"):
            self.own.sql = psycopg.connect(self.database, autocommit=True)
            self.own.redis = redis.Redis.from_url(self.redis_url, retry=Retry(NoBackoff(), 0))
        self.case.deposit(self.own.sql, self.own.redis, AMOUNTS[index])
        return "ok"

    def settle(self, index: int) -> None:
        pass

    def leave(self, index: int) -> None:
        for client in vars(self.own).values():
            client.close()

    def judge(self, endings: Sequence[Ending], stuck: bool, contents: bytes) -> Judgement:
        row = self.admin.execute(READ).fetchone()
        balance = row[0] if row else 0
        done = sum(amount for e, amount in zip(endings, AMOUNTS, strict=False) if e.result == "ok")
        if stuck:
            return Judgement("stalled", ("nobody could go on",))
        if balance != OPENING + done:
            return Judgement("lost", (f"{OPENING} + {done} became {balance}",))
        return Judgement(UNBROKEN)

    def show(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self.admin.close()
        self.store.close()
