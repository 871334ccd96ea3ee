"""Commands that write what a clock has shown, and compare it."""

from __future__ import annotations

from typing import Any

from tests.lost_update_lab.differential.commands import key, one_counter, sql

#: a worker looks at its clock
LOOKS = (("look", "datetime"), ("look", "time"))
#: it compares in Python what it has seen last with what its clock has shown last
COMPARES = (("compare", "<"), ("compare", "<="), ("compare", "="), ("passed", 0.2))

ROW_WRITES = (
    sql("UPDATE account SET n = n + {own}, at = '{at}' WHERE id = 1 AND at <= '{at}'", "done"),
    sql("UPDATE account SET n = n + {own}, at = '{at}' WHERE id = 1 AND at < '{at}'", "done"),
    sql("UPDATE account SET n = {n+own}, at = '{at}' WHERE id = 1"),
    sql("INSERT INTO event VALUES ({own}, '{at}')"),
    sql(
        "INSERT INTO event SELECT {own}, '{at}' WHERE NOT EXISTS (SELECT FROM event WHERE at < '{at}')",
        "done",
    ),
    sql(
        "UPDATE lease SET owner = {own}, until = '{at}'::timestamptz + interval '0.3 s' WHERE until < '{at}'",
        "done",
    ),
    sql("DELETE FROM event WHERE at < '{at}'", "done"),
)
ROW_READS = (
    sql("SELECT who FROM event ORDER BY at DESC LIMIT 1", "n"),
    sql("SELECT who FROM event ORDER BY at LIMIT 1", "n"),
    sql("SELECT n FROM account WHERE id = 1", "n"),
    sql("SELECT n FROM account WHERE id = 1 FOR UPDATE", "n"),
    sql("SELECT at FROM account WHERE id = 1", "seen"),
    sql("SELECT at FROM account WHERE id = 1 FOR UPDATE", "seen"),
    sql("SELECT max(at) FROM event", "seen"),
    sql("SELECT owner FROM lease WHERE until > '{at}'", "n"),
    sql("SELECT count(*) FROM event WHERE at < '{at}'", "n"),
)
#: by the server's clock
SERVER_CLOCK = (
    sql("UPDATE account SET n = n + {own}, at = now() WHERE id = 1 AND at <= now()", "done"),
    sql(
        "UPDATE account SET n = n + {own}, at = clock_timestamp() WHERE id = 1 AND at < clock_timestamp()",
        "done",
    ),
    sql("INSERT INTO event VALUES ({own}, now())"),
    sql("INSERT INTO event VALUES ({own}, clock_timestamp())"),
    sql("UPDATE lease SET owner = {own}, until = now() + interval '0.3 s' WHERE until < now()", "done"),
    sql("SELECT count(*) FROM event WHERE at < now()", "n"),
    sql("SELECT owner FROM lease WHERE until > now()", "n"),
    sql("SELECT now()", "seen"),
    sql("SELECT clock_timestamp()", "seen"),
)
_LATEST = """if tonumber(redis.call('GET', KEYS[1])) <= tonumber(ARGV[1]) then
redis.call('SET', KEYS[1], ARGV[1]) redis.call('SET', 'count', ARGV[2]) return 1 end return 0"""
_STAMP = """local t = redis.call('TIME')
redis.call('SET', KEYS[1], t[1] .. '.' .. string.format('%06d', t[2])) return 1"""
KEY_WRITES = (
    key("SET", "at", "{unix}"),
    key("EVAL", _LATEST, 1, "at", "{unix}", "{own}", keep="done"),
    key("EVAL", _STAMP, 1, "at", keep="done"),
    key("ZADD", "z", "{unix}", "{own}", keep="done"),
    key("ZADD", "z", "GT", "CH", "{unix}", "one", keep="done"),
    key("ZREMRANGEBYSCORE", "z", "-inf", "({unix}", keep="done"),
    key("INCR", "count", keep="n"),
    key("SET", "lock", "{own}", "NX", "PX", 300, keep="done"),
)
KEY_READS = (
    key("GET", "at", keep="seen"),
    key("ZRANGE", "z", 0, 0, "WITHSCORES", keep="seen"),
    key("ZCOUNT", "z", "-inf", "({unix}", keep="n"),
    key("ZCARD", "z", keep="n"),
    key("GET", "count", keep="n"),
)


def dated_rows(sql: Any) -> None:
    sql.execute(
        """DROP TABLE IF EXISTS child, audit, account, event, lease CASCADE;
        CREATE TABLE account (id int PRIMARY KEY, n int, at timestamptz NOT NULL);
        CREATE TABLE event (who int, at timestamptz NOT NULL);
        CREATE TABLE lease (id int PRIMARY KEY, owner int, until timestamptz);
        INSERT INTO account VALUES (1, 100, '2020-01-01'), (2, 100, '2020-01-01');
        INSERT INTO lease VALUES (1, 0, '2020-01-01')"""
    )


def a_dated_key(redis: Any) -> None:
    one_counter(redis)
    redis.set("at", "1000000000")


def dated_rows_and_a_key(sql: Any, redis: Any) -> None:
    dated_rows(sql)
    a_dated_key(redis)
