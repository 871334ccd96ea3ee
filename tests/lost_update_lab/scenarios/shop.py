"""A small shop in plain psycopg, with its operations broken and mended."""

from __future__ import annotations

import os
from typing import Any

import psycopg

SCHEMA = """
CREATE TABLE voucher (code text PRIMARY KEY, uses int NOT NULL, touched timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE redemption (id serial PRIMARY KEY, code text REFERENCES voucher, customer int NOT NULL,
    created timestamptz NOT NULL DEFAULT clock_timestamp());
INSERT INTO voucher VALUES ('XMAS', 1);
"""
READ = "SELECT uses FROM voucher WHERE code = %s"


def one_voucher() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(SCHEMA)


def redeem(code: str, customer: int, sql: Any, query: str = READ) -> str:
    """Count, then write: two customers may both see that one use is left."""
    with sql.transaction():
        left = sql.execute(query, [code]).fetchone()[0]
        if left < 1:
            return "too late"
        sql.execute("UPDATE voucher SET uses = %s, touched = DEFAULT WHERE code = %s", [left - 1, code])
        sql.execute("INSERT INTO redemption (code, customer) VALUES (%s, %s)", [code, customer])
    return "redeemed"


def redeem_locked(code: str, customer: int, sql: Any) -> str:
    return redeem(code, customer, sql, READ + " FOR UPDATE")


def redemptions() -> int:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        return connection.execute("SELECT count(*) FROM redemption").fetchone()[0]  # type: ignore[index]
