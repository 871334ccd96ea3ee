"""Programs as Hypothesis writes them: a few commands of Redis and PostgreSQL, in transactions, branches and loops.

They protect nothing and mean nothing. What counts is what two of them come to side by side, and that each search of two
comes to its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hypothesis import strategies as st

from lost_update_lab.model.system import UNBROKEN, Ending, Judgement
from tests.lost_update_lab.bank import Bank
from tests.lost_update_lab.generated_locks import COMPARE_AND_DELETE


@dataclass
class Memory:
    """What a program has read last. `own`: the amount by which it changes things, and its name in a lock."""

    own: int
    number: int = 0
    done: bool = True


def _number(ask: Callable[[Bank, int], Any]) -> Callable[[Bank, Memory], None]:
    def command(bank: Bank, memory: Memory) -> None:
        memory.number = int(ask(bank, memory.own) or 0)

    return command


def _done(ask: Callable[[Bank, int], Any]) -> Callable[[Bank, Memory], None]:
    def command(bank: Bank, memory: Memory) -> None:
        memory.done = bool(ask(bank, memory.own))

    return command


def _row(text: str) -> Callable[[Bank, Memory], None]:
    return _number(lambda bank, own: bank.sql.execute(text).fetchone()[0])


def _changed(text: str) -> Callable[[Bank, Memory], None]:
    return _done(lambda bank, own: bank.sql.execute(text).rowcount)


def _watch_then_set(bank: Bank, memory: Memory) -> None:
    with bank.redis.pipeline() as pipe:
        pipe.watch("count")
        memory.number = int(pipe.get("count") or 0)
        pipe.multi()
        pipe.set("count", memory.number + memory.own)
        pipe.execute()


COMMANDS: dict[str, Callable[[Bank, Memory], Any]] = {
    "GET": _number(lambda bank, own: bank.redis.get("count")),
    "SET what was read + own": lambda bank, memory: bank.redis.set("count", memory.number + memory.own),
    "SET PX": lambda bank, memory: bank.redis.set("count", memory.own, px=500),
    "INCRBY": _number(lambda bank, own: bank.redis.incrby("count", own)),
    "DEL": _done(lambda bank, own: bank.redis.delete("count")),
    "SET NX": _done(lambda bank, own: bank.redis.set("lock", own, nx=True)),
    "SET NX PX": _done(lambda bank, own: bank.redis.set("lock", own, nx=True, px=400)),
    "PEXPIRE": _done(lambda bank, own: bank.redis.pexpire("lock", 300)),
    "compare and delete": _done(lambda bank, own: bank.redis.eval(COMPARE_AND_DELETE, 1, "lock", own)),
    "WATCH, GET, MULTI, SET, EXEC": _watch_then_set,
    "LPUSH": _number(lambda bank, own: bank.redis.lpush("queue", own)),
    "RPOP": _number(lambda bank, own: bank.redis.rpop("queue")),
    "BRPOP": _done(lambda bank, own: bank.redis.brpop("queue", 1)),
    "ZPOPMIN": _number(lambda bank, own: len(bank.redis.zpopmin("set"))),
    "ZADD": _number(lambda bank, own: bank.redis.zadd("set", {own: own})),
    "sleep 0.3": lambda bank, memory: time.sleep(0.3),
    "SELECT": _row("SELECT balance FROM account WHERE id = 1"),
    "SELECT SUM": _row("SELECT SUM(balance) FROM account"),
    "SELECT FOR UPDATE": _row("SELECT balance FROM account WHERE id = 1 FOR UPDATE"),
    "SELECT FOR UPDATE of 2": _row("SELECT balance FROM account WHERE id = 2 FOR UPDATE"),
    "SELECT FOR SHARE": _row("SELECT balance FROM account WHERE id = 1 FOR SHARE"),
    "SKIP LOCKED": _changed("SELECT FROM account WHERE id = 1 FOR UPDATE SKIP LOCKED"),
    "UPDATE what was read + own": lambda bank, memory: bank.write(memory.number + memory.own),
    "UPDATE + 1": _changed("UPDATE account SET balance = balance + 1 WHERE id = 1"),
    "UPDATE + 1 of 2": _changed("UPDATE account SET balance = balance + 1 WHERE id = 2"),
    "UPDATE if enough": _changed("UPDATE account SET balance = balance - 60 WHERE id = 1 AND balance >= 60"),
    "UPDATE if version": _changed("UPDATE account SET version = version + 1 WHERE id = 1 AND version = 0"),
    "UPDATE as it is": _changed("UPDATE account SET version = 0 WHERE id = 1"),
    "INSERT": _changed("INSERT INTO account VALUES (3, 1, 0) ON CONFLICT DO NOTHING"),
    "DELETE": _changed("DELETE FROM account WHERE id = 3"),
    "pg_advisory_lock": lambda bank, memory: bank.sql.execute("SELECT pg_advisory_lock(7)"),
    "pg_try_advisory_lock": _row("SELECT pg_try_advisory_lock(7)"),
    "pg_advisory_unlock": _row("SELECT pg_advisory_unlock(7)"),
    "pg_advisory_xact_lock": lambda bank, memory: bank.sql.execute("SELECT pg_advisory_xact_lock(7)"),
}
#: whose success a loop waits for
TRIED = ("SET NX", "SET NX PX", "RPOP", "UPDATE if version", "compare and delete")


class Part(Protocol):
    def run(self, bank: Bank, memory: Memory) -> None: ...

    @property
    def steps(self) -> int:
        """The most commands that it sends."""


@dataclass(frozen=True)
class Command:
    name: str

    def run(self, bank: Bank, memory: Memory) -> None:
        COMMANDS[self.name](bank, memory)

    @property
    def steps(self) -> int:
        return 3 if self.name.startswith("WATCH") else 1


@dataclass(frozen=True)
class If:
    """What follows if the last command that says so was done."""

    then: tuple[Part, ...]

    def run(self, bank: Bank, memory: Memory) -> None:
        if memory.done:
            run_all(self.then, bank, memory)

    @property
    def steps(self) -> int:
        return steps(self.then)


@dataclass(frozen=True)
class Loop:
    """Two tries, `poll` seconds apart."""

    tried: str
    poll: float

    def run(self, bank: Bank, memory: Memory) -> None:
        for _ in range(2):
            COMMANDS[self.tried](bank, memory)
            if memory.done:
                break
            time.sleep(self.poll)

    @property
    def steps(self) -> int:
        return 2


@dataclass(frozen=True)
class Transaction:
    parts: tuple[Part, ...]
    isolation: str

    def run(self, bank: Bank, memory: Memory) -> None:
        bank.sql.execute(f"BEGIN ISOLATION LEVEL {self.isolation}")
        try:
            run_all(self.parts, bank, memory)
        except BaseException:
            bank.sql.execute("ROLLBACK")
            raise
        bank.sql.execute("COMMIT")

    @property
    def steps(self) -> int:
        return 2 + steps(self.parts)


@dataclass(frozen=True)
class Finally:
    parts: tuple[Part, ...]
    after: tuple[Part, ...]

    def run(self, bank: Bank, memory: Memory) -> None:
        try:
            run_all(self.parts, bank, memory)
        finally:
            run_all(self.after, bank, memory)

    @property
    def steps(self) -> int:
        return steps(self.parts) + steps(self.after)


def run_all(parts: Sequence[Part], bank: Bank, memory: Memory) -> None:
    for part in parts:
        part.run(bank, memory)


def steps(parts: Sequence[Part]) -> int:
    return sum(part.steps for part in parts)


Program = tuple[Part, ...]


def pairs(most: int) -> st.SearchStrategy[tuple[Program, Program]]:
    """`most`: the steps of both programs together. The number of schedules grows with their factorial."""
    command = st.sampled_from(list(COMMANDS)).map(Command)
    few = st.lists(command, min_size=1, max_size=2).map(tuple)
    one = st.tuples(command)
    part = st.one_of(
        command,
        command,
        st.builds(If, few),
        st.builds(Loop, st.sampled_from(TRIED), st.sampled_from([0.05, 0.5])),
        st.builds(
            Transaction,
            st.one_of(few, st.tuples(st.builds(If, one))),
            st.sampled_from(["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]),
        ),
        st.builds(Finally, one, one),
    )
    program = st.lists(part, min_size=1, max_size=3).map(tuple)
    return st.tuples(program, program).filter(lambda both: sum(map(steps, both)) <= most)


class Pair(Bank):
    """Each worker runs a program of its own. `outcomes`: what the two have come to, and what was left in the database.
    No schedule is broken."""

    def __init__(self, programs: Sequence[Program], database: str, redis_url: str) -> None:
        super().__init__(lambda bank, amount: None, database, redis_url)
        self.programs = programs
        self.outcomes: set[Any] = set()

    def reset(self, changed: Any) -> None:
        super().reset(changed)
        if "postgres" in changed:
            self.admin.execute("DELETE FROM account WHERE id = 3")

    def remembers(self, contents: Mapping[str, bytes]) -> bool:
        return True  # what `judge` looks at is handed to it

    def work(self, index: int) -> str:
        memory = Memory(own=10 * (index + 1))
        run_all(self.programs[index], self, memory)
        return f"{memory.number} {memory.done}"

    def judge(self, endings: Sequence[Ending], stuck: bool, contents: Mapping[str, bytes]) -> Judgement:
        ended = tuple((each.result, type(each.error), each.crashed, each.waiting) for each in endings)
        self.outcomes.add((ended, stuck, contents["postgres"]))
        return Judgement(UNBROKEN)
