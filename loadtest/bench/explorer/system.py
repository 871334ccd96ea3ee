"""A case of `cases.py` as the explorer's system under test."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from loadtest.bench.explorer.cases import DEPOSIT, OPENING, READ, RESET, SCHEMA, SearchCase
from loadtest.verdict.words import Word
from locks.fair_lock import client as fair_lock_client
from lost_update_lab.model.system import UNBROKEN, Ending, Judgement

CONTENTS = "SELECT id, balance FROM account ORDER BY id"


class AccountSystem:
    """An account in PostgreSQL and a Valkey. Each worker keeps its own clients from schedule to schedule."""

    schema, opening = SCHEMA, RESET
    words = (Word.LOST, Word.STALLED)

    def __init__(self, name: str, database: str, redis_url: str) -> None:
        self.name, self.database, self.redis_url = name, database, redis_url
        self.admin = psycopg.connect(database, autocommit=True)
        self.admin.execute(self.schema)
        self.admin.execute(DEPOSIT)
        self.admin_redis = redis.Redis.from_url(redis_url)
        self.own = threading.local()

    @property
    def sql(self) -> psycopg.Connection[Any]:
        if not hasattr(self.own, "sql") or self.own.sql.closed:
            self.own.sql = psycopg.connect(self.database, autocommit=True)
        found: psycopg.Connection[Any] = self.own.sql
        return found

    @property
    def redis(self) -> redis.Redis:
        if not hasattr(self.own, "redis"):
            self.own.redis = redis.Redis.from_url(self.redis_url, retry=Retry(NoBackoff(), 0))
        found: redis.Redis = self.own.redis
        return found

    def reset(self, changed: Collection[str]) -> None:
        fair_lock_client.start_again()  # each run's workers are new processes
        if "postgres" in changed:
            self.admin.execute(self.opening)
        if "redis" in changed:
            self.admin_redis.flushall()

    def settle(self, index: int) -> None:
        pass

    def remembers(self, contents: Mapping[str, bytes]) -> bool:
        return False  # the server has the balance

    def leave(self, index: int) -> None:
        for client in vars(self.own).values():
            client.close()


class CaseSystem(AccountSystem):
    """The deposit of a case."""

    def __init__(self, case: SearchCase, database: str, redis_url: str) -> None:
        super().__init__(case.name, database, redis_url)
        self.case = case

    def work(self, index: int) -> str:
        self.case.work(self.sql, self.redis, index)
        return "ok"

    def judge(self, endings: Sequence[Ending], stuck: bool, contents: Mapping[str, bytes]) -> Judgement:
        row = self.admin.execute(READ).fetchone()
        balance = row[0] if row else 0
        amounts = zip(endings, self.case.amounts, strict=True)
        done = sum(amount * self.case.times for ending, amount in amounts if ending.result == "ok")
        if stuck:
            return Judgement(Word.STALLED, ("no worker could go on",))
        if balance != OPENING + done:
            return Judgement(Word.LOST, (f"{OPENING} + {done} became {balance}",))
        return Judgement(UNBROKEN)

    def show(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self.admin.close()
        self.admin_redis.close()
