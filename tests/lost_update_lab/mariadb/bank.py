"""Deposits to an account in MariaDB, in the ways of the literature."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pymysql

from lost_update_lab.embedded.mariadb import MariaDB
from lost_update_lab.model.system import UNBROKEN, Ending, Judgement
from lost_update_lab.servers.mariadb.server import MariaDBServer

TABLES = (
    "CREATE TABLE account (id INT PRIMARY KEY, balance BIGINT)",
    "INSERT INTO account VALUES (1, 100), (2, 100)",
    "CREATE TABLE lockrow (id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(100) UNIQUE)",
)
DEADLOCK, TIMED_OUT, DUPLICATE, CHANGED = 1213, 1205, 1062, 1020


class Bank:
    """The system: worker number n deposits 10 × (n + 1)."""

    name, words = "bank", ("lost", "stalled")

    def __init__(self, deposit: Callable[[Bank, int], str], server: MariaDBServer, at: MariaDB) -> None:
        self.deposit, self.server, self.at = deposit, server, at
        self._own = threading.local()
        #: numbers of the errors that workers ended with, in any schedule
        self.errors: set[int] = set()
        #: what was left, and which workers had failed
        self.outcomes: set[tuple[int, tuple[str, ...]]] = set()

    @property
    def sql(self) -> pymysql.Connection[Any]:
        if not hasattr(self._own, "connection"):
            first = getattr(self.deposit, "first", None)  # a client's own first command, before any step
            self._own.connection = self.at.connect(autocommit=True, init_command=first)
        found: pymysql.Connection[Any] = self._own.connection
        return found

    def ask(self, text: str, *values: Any) -> tuple[tuple[Any, ...], ...]:
        with self.sql.cursor() as cursor:
            cursor.execute(text, values)
            return tuple(cursor.fetchall())

    def read(self) -> int:
        return int(self.ask("SELECT balance FROM account WHERE id = 1")[0][0])

    def write(self, balance: int) -> None:
        self.ask("UPDATE account SET balance = %s WHERE id = 1", balance)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.sql.begin()
        try:
            yield
        except pymysql.MySQLError:
            self.sql.rollback()
            raise
        self.sql.commit()

    def reset(self, changed: Collection[str]) -> None:
        if "mariadb" in changed:
            self.server.restore()

    def work(self, index: int) -> Any:
        return self.deposit(self, 10 * (index + 1))

    def settle(self, index: int) -> None:
        pass

    def leave(self, index: int) -> None:
        self.sql.close()

    def remembers(self, contents: Mapping[str, bytes]) -> bool:
        return False

    def judge(self, endings: Sequence[Ending], stuck: bool, contents: Mapping[str, bytes]) -> Judgement:
        balance = self.server.ask("SELECT balance FROM account WHERE id = 1")[0][0]
        self.errors |= {e.error.args[0] for e in endings if isinstance(e.error, pymysql.MySQLError)}
        self.outcomes.add((balance, tuple(each.worker for each in endings if each.error)))
        if balance < 100 + sum(10 * (n + 1) for n, each in enumerate(endings) if each.result == "ok"):
            return Judgement("lost", (f"{balance} is left",))
        if stuck or any(each.error and not each.struck for each in endings):
            return Judgement("stalled", (str([each.error for each in endings]),))
        return Judgement(UNBROKEN)

    def show(self) -> dict[str, Any]:
        return {"balance": self.server.ask("SELECT id, balance FROM account")}


def no_lock(bank: Bank, amount: int) -> str:
    bank.write(bank.read() + amount)
    return "ok"


def select_for_update(bank: Bank, amount: int) -> str:
    with bank.transaction():
        balance = bank.ask("SELECT balance FROM account WHERE id = 1 FOR UPDATE")[0][0]
        bank.write(balance + amount)
    return "ok"


def read_committed(bank: Bank, amount: int) -> str:
    return select_for_update(bank, amount)


read_committed.first = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"  # type: ignore[attr-defined]


def repeatable_read(bank: Bank, amount: int) -> str:
    """MariaDB's default: a write goes over the newest row, whatever the snapshot says."""
    with bank.transaction():
        bank.write(bank.read() + amount)
    return "ok"


def snapshot_isolation(bank: Bank, amount: int) -> str:
    bank.ask("SET SESSION innodb_snapshot_isolation = ON")
    while True:
        try:
            return repeatable_read(bank, amount)
        except pymysql.MySQLError as error:
            if error.args[0] not in (CHANGED, DEADLOCK):
                raise


def behind_its_snapshot(bank: Bank, amount: int) -> str:
    """A doubles, B adds. What A reads says nothing of when it has read; whether it may write depends on that."""
    if amount > 10:
        bank.ask("UPDATE account SET balance = balance + %s WHERE id = 1", amount)
        return "ok"
    bank.ask("SET SESSION innodb_snapshot_isolation = ON")
    with bank.transaction():
        bank.ask("SELECT balance FROM account WHERE id = 2")
        bank.ask("UPDATE account SET balance = balance * 2 WHERE id = 1")
    return "ok"


def opposite_order(bank: Bank, amount: int) -> str:
    with bank.transaction():
        for number in (1, 2) if amount == 10 else (2, 1):
            bank.ask("UPDATE account SET balance = balance + %s WHERE id = %s", amount, number)
    return "ok"


def named_lock(bank: Bank, amount: int) -> str:
    if not bank.ask("SELECT GET_LOCK('account 1', 10)")[0][0]:
        raise TimeoutError("not granted in 10 s")
    try:
        return no_lock(bank, amount)
    finally:
        bank.ask("SELECT RELEASE_LOCK('account 1')")


def lock_table(level: str) -> Callable[[Bank, int], str]:
    """The article's first version: look for the row, locked; if it is not there, insert it. One attempt."""

    def deposit(bank: Bank, amount: int) -> str:
        bank.ask(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        with bank.transaction():
            if bank.ask("SELECT name FROM lockrow WHERE name = 'account 1' FOR UPDATE"):
                return "busy"
            bank.ask("INSERT INTO lockrow (name) VALUES ('account 1')")
        no_lock(bank, amount)
        bank.ask("DELETE FROM lockrow WHERE name = 'account 1'")
        return "ok"

    return deposit


def lock_row(bank: Bank, amount: int) -> str:
    """Takes a row that is there, or inserts it; asks again after 5 s. Each other command commits by itself."""
    while not _taken(bank):
        time.sleep(5)
    no_lock(bank, amount)
    bank.ask("DELETE FROM lockrow WHERE name = 'account 1'")
    return "ok"


lock_row.first = read_committed.first  # type: ignore[attr-defined]


def _taken(bank: Bank) -> bool:
    try:
        with bank.transaction():
            free = not bank.ask("SELECT name FROM lockrow WHERE name = 'account 1' FOR UPDATE")
            if free:
                bank.ask("INSERT INTO lockrow (name) VALUES ('account 1')")
            return free
    except pymysql.IntegrityError:
        return False


def impatient(bank: Bank, amount: int) -> str:
    bank.ask("SET SESSION innodb_lock_wait_timeout = 2")
    return select_for_update(bank, amount)
