"""A shop on MariaDB, as users of PyMySQL write it: a voucher with one use, accounts that money moves between."""

from __future__ import annotations

import os
from typing import Any

import pymysql

from lost_update_lab.under_test.mariadb import parameters


def connect(**options: Any) -> Any:
    return pymysql.connect(**parameters(os.environ["DATABASE_URL"]), **options)


def ask(text: str, *values: Any) -> Any:
    with connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(text, values)
        return cursor.fetchall()


def open_shop() -> None:
    for name in ("redemption", "voucher", "account"):
        ask(f"DROP TABLE IF EXISTS {name}")
    ask("CREATE TABLE voucher (code VARCHAR(20) PRIMARY KEY, uses INT NOT NULL)")
    ask(
        "CREATE TABLE redemption (id INT AUTO_INCREMENT PRIMARY KEY, code VARCHAR(20), customer INT,"
        " at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, FOREIGN KEY (code) REFERENCES voucher (code))"
    )
    ask("CREATE TABLE account (id INT PRIMARY KEY, balance DECIMAL(12, 2) NOT NULL)")
    ask("INSERT INTO voucher VALUES ('XMAS', 1)")
    ask("INSERT INTO account VALUES (1, 100), (2, 100)")


def redeem(code: str, customer: int, lock: str = "", *, sql: Any) -> str:
    sql.begin()
    try:
        with sql.cursor() as cursor:
            cursor.execute(f"SELECT uses FROM voucher WHERE code = %s {lock}", [code])
            left = cursor.fetchone()[0]
            if left < 1:
                return "too late"
            cursor.execute("UPDATE voucher SET uses = %s WHERE code = %s", [left - 1, code])
            cursor.execute("INSERT INTO redemption (code, customer) VALUES (%s, %s)", [code, customer])
        sql.commit()
    finally:
        sql.rollback()
    return "redeemed"


def redeem_locked(code: str, customer: int, *, sql: Any) -> str:
    return redeem(code, customer, "FOR UPDATE", sql=sql)


def withdraw(amount: int, number: int, *, sql: Any) -> str:
    """The two accounts together must not be below 0: write skew."""
    sql.begin()
    with sql.cursor() as cursor:
        cursor.execute("SELECT SUM(balance) FROM account")
        enough = cursor.fetchone()[0] >= amount
        if enough:
            cursor.execute("UPDATE account SET balance = balance - %s WHERE id = %s", [amount, number])
    sql.commit()
    return "paid" if enough else "refused"


def leased(amount: int, *, sql: Any) -> str:
    """A lease in a row, by the server's clock, and no work in between."""
    with sql.cursor() as cursor:
        free = (
            "UPDATE voucher SET uses = UNIX_TIMESTAMP() + 10 WHERE code = 'XMAS' AND uses < UNIX_TIMESTAMP()"
        )
        if not cursor.execute(free):
            return "busy"
        cursor.execute("SELECT balance FROM account WHERE id = 1")
        balance = cursor.fetchone()[0]
        cursor.execute("UPDATE account SET balance = %s WHERE id = 1", [balance + amount])
        cursor.execute("UPDATE voucher SET uses = 0 WHERE code = 'XMAS'")
    return "ok"
