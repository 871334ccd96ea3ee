"""What a program may send, as data, and the setups that these commands need.

In a text, `{own}` is the worker's own number, `{n}` the number that it has read last, `{n+own}` their sum, `{at}` what
its clock has shown last, and `{unix}` the same in seconds. `keep`: what it remembers of the reply (Memory.keep).
"""

from __future__ import annotations

from typing import Any

Part = tuple[Any, ...]
Program = tuple[Part, ...]


def sql(text: str, keep: str = "") -> Part:
    return ("sql", text, keep)


def key(*asked: Any, keep: str = "") -> Part:
    return ("key", asked, keep)


# -- PostgreSQL ---------------------------------------------------------------------------------------------------

PG_READS = (
    sql("SELECT n FROM account WHERE id = 1", "n"),
    sql("SELECT sum(n) FROM account", "n"),
    sql("SELECT count(*) FROM account WHERE n > 90", "n"),
)
PG_LOCKS = (
    sql("SELECT n FROM account WHERE id = 1 FOR UPDATE", "n"),
    sql("SELECT n FROM account WHERE id = 2 FOR UPDATE", "n"),
    sql("SELECT n FROM account WHERE id = 1 FOR NO KEY UPDATE", "n"),
    sql("SELECT n FROM account WHERE id = 1 FOR SHARE", "n"),
    sql("SELECT n FROM account WHERE id = 1 FOR UPDATE NOWAIT", "n"),
    sql("SELECT id FROM account ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", "found"),
    sql("SELECT pg_advisory_xact_lock(7)"),
    sql("SELECT pg_advisory_lock(7)"),
    sql("SELECT pg_advisory_unlock(7)", "done"),
    sql("SELECT pg_try_advisory_lock(7)", "done"),
    sql("SELECT pg_try_advisory_xact_lock(7)", "done"),
    sql("SELECT pg_advisory_xact_lock_shared(7)"),
)
PG_WRITES = (
    sql("UPDATE account SET n = {n+own} WHERE id = 1"),
    sql("UPDATE account SET n = {n+own} WHERE id = 2"),
    sql("UPDATE account SET n = n + {own} WHERE id = 1", "done"),
    sql("UPDATE account SET n = n - 60 WHERE id = 1 AND n >= 60", "done"),
    sql("UPDATE account SET version = version + 1 WHERE id = 1 AND version = 0", "done"),
    sql("UPDATE account SET version = 0 WHERE id = 1", "done"),
    sql("UPDATE account SET n = n + 1 WHERE n >= 100", "done"),
    sql("INSERT INTO account VALUES (3, {own}) ON CONFLICT DO NOTHING", "done"),
    sql("INSERT INTO account VALUES (3, {own}) ON CONFLICT (id) DO UPDATE SET n = account.n + {own}", "done"),
    sql("DELETE FROM account WHERE id = 3", "done"),
    sql("INSERT INTO account VALUES (4, {n})"),
    sql("UPDATE account SET n = n * 2 WHERE id = 1 RETURNING n", "n"),
)
PG_CONSTRAINED = (
    sql("INSERT INTO child VALUES ({own}, 1, {own})"),
    sql("INSERT INTO child VALUES (9, 2, 9)"),
    sql("INSERT INTO child VALUES ({own}, 3, {own})"),
    sql("UPDATE child SET place = 3 - place WHERE id = 1", "done"),
    sql("UPDATE child SET place = 7 WHERE id = 2", "done"),
    sql("DELETE FROM child WHERE parent = 2", "done"),
    sql("DELETE FROM account WHERE id = 2", "done"),
    sql("UPDATE child SET parent = 1 WHERE id = 1", "done"),
    sql("SELECT count(*) FROM child WHERE parent = 2", "n"),
    sql("SET CONSTRAINTS ALL DEFERRED"),
    sql("SET CONSTRAINTS ALL IMMEDIATE"),
    sql("UPDATE account SET id = 5 WHERE id = 2"),
)


def two_accounts(sql: Any) -> None:
    sql.execute(
        """DROP TABLE IF EXISTS child, audit, account, event, lease CASCADE;
        CREATE TABLE account (id int PRIMARY KEY, n int, version int NOT NULL DEFAULT 0);
        INSERT INTO account VALUES (1, 100, 0), (2, 100, 0)"""
    )


def with_constraints(sql: Any) -> None:
    two_accounts(sql)
    sql.execute(
        """CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES account DEFERRABLE INITIALLY IMMEDIATE,
            place int, CONSTRAINT places UNIQUE (place) DEFERRABLE INITIALLY DEFERRED);
        INSERT INTO child VALUES (1, 2, 1), (2, 1, 2)"""
    )


def with_a_trigger(sql: Any) -> None:
    with_constraints(sql)
    sql.execute(
        """CREATE TABLE audit (who int, total int);
        CREATE OR REPLACE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO audit SELECT NEW.n, sum(n) FROM account; RETURN NULL; END $$;
        CREATE TRIGGER noted AFTER UPDATE ON account FOR EACH ROW EXECUTE FUNCTION noted()"""
    )


# -- MariaDB ------------------------------------------------------------------------------------------------------

MARIADB_READS = (
    sql("SELECT n FROM account WHERE id = 1", "n"),
    sql("SELECT SUM(n) FROM account", "n"),
    sql("SELECT COUNT(*) FROM child", "n"),
)
MARIADB_LOCKS = (
    sql("SELECT n FROM account WHERE id = 1 FOR UPDATE", "n"),
    sql("SELECT n FROM account WHERE id = 2 FOR UPDATE", "n"),
    sql("SELECT n FROM account WHERE id = 1 LOCK IN SHARE MODE", "n"),
    sql("SELECT n FROM account WHERE id = 4 FOR UPDATE", "n"),
    sql("SELECT n FROM account WHERE id > 2 FOR UPDATE", "n"),
    sql("SELECT id FROM account ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", "found"),
    sql("SELECT n FROM account WHERE id = 1 FOR UPDATE NOWAIT", "n"),
    sql("SELECT GET_LOCK('l', 2)", "done"),
    sql("SELECT GET_LOCK('l', 0)", "done"),
    sql("SELECT RELEASE_LOCK('l')", "done"),
)
MARIADB_WRITES = (
    sql("UPDATE account SET n = {n+own} WHERE id = 1"),
    sql("UPDATE account SET n = {n+own} WHERE id = 2"),
    sql("UPDATE account SET n = n + {own} WHERE id = 1", "done"),
    sql("UPDATE account SET n = n - 60 WHERE id = 1 AND n >= 60", "done"),
    sql("UPDATE account SET version = version + 1 WHERE id = 1 AND version = 0", "done"),
    sql("INSERT IGNORE INTO account VALUES (4, {own}, 0)", "done"),
    sql("INSERT INTO account VALUES (4, {own}, 0) ON DUPLICATE KEY UPDATE n = n + {own}", "done"),
    sql("INSERT INTO account VALUES (5, {n}, 0)"),
    sql("DELETE FROM account WHERE id = 4", "done"),
    sql("DELETE FROM account WHERE id = 7", "done"),
    sql("INSERT INTO child VALUES ({own}, 1, {own})"),
    sql("INSERT INTO child VALUES (9, 2, 9)"),
    sql("UPDATE child SET place = 5 WHERE id = 1", "done"),
    sql("DELETE FROM child WHERE parent = 2", "done"),
    sql("REPLACE INTO account VALUES (7, {own}, 1)"),
)


def accounts_in_mariadb(sql: Any) -> None:
    with sql.cursor() as cursor:
        for each in (
            "CREATE TABLE account (id INT PRIMARY KEY, n INT, version INT NOT NULL DEFAULT 0, KEY by_n (n))",
            "CREATE TABLE child (id INT PRIMARY KEY, parent INT, place INT, UNIQUE KEY places (place), "
            "FOREIGN KEY (parent) REFERENCES account (id))",
            "INSERT INTO account VALUES (1, 100, 0), (2, 100, 0), (7, 0, 0)",
            "INSERT INTO child VALUES (1, 2, 1), (4, 1, 4)",
        ):
            cursor.execute(each)


# -- Redis --------------------------------------------------------------------------------------------------------

_GUARD = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
_BUMP = """local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end return n"""
_LEFT = """local t = redis.call('PTTL', KEYS[1])
if t > 0 and t < 250 then redis.call('PEXPIRE', KEYS[1], 900) return 1 end return 0"""
REDIS_READS = (
    key("GET", "count", keep="n"),
    key("EXISTS", "lock", keep="done"),
    key("ZCARD", "z", keep="n"),
    key("LLEN", "q", keep="n"),
    key("GETEX", "count", "PX", 300, keep="n"),
    key("GETEX", "count", "PERSIST", keep="n"),
    key("XLEN", "s", keep="n"),
)
REDIS_WRITES = (
    key("SET", "count", "{n+own}"),
    key("SET", "count", "{own}", "PX", 400),
    key("SET", "count", "{own}", "GET", keep="n"),
    key("SET", "count", "{n+own}", "KEEPTTL"),
    key("SET", "lock", "{own}", "NX", "PX", 400, keep="done"),
    key("SET", "lock", "{own}", "NX", keep="done"),
    key("SET", "lock", "{own}", "XX", "PX", 300, keep="done"),
    key("INCR", "count", keep="n"),
    key("INCRBY", "count", "{own}", keep="n"),
    key("DEL", "lock", keep="done"),
    key("GETDEL", "count", keep="n"),
    key("PEXPIRE", "lock", 300, keep="done"),
    key("PEXPIRE", "count", 200, "NX", keep="done"),
    key("PERSIST", "lock", keep="done"),
    key("EVAL", _GUARD, 1, "lock", "{own}", keep="done"),
    key("EVAL", _BUMP, 1, "rate", 500, keep="n"),
    key("EVAL", _LEFT, 1, "lock", keep="done"),
    key("LPUSH", "q", "{own}", keep="n"),
    key("RPOP", "q", keep="n"),
    key("BRPOP", "q", 1, keep="done"),
    key("LMOVE", "q", "r", "RIGHT", "LEFT", keep="n"),
    key("BLMOVE", "q", "r", "RIGHT", "LEFT", 1, keep="n"),
    key("ZADD", "z", "NX", "{own}", "{own}", keep="done"),
    key("ZPOPMIN", "z"),
    key("ZREMRANGEBYSCORE", "z", 0, 15, keep="done"),
    key("RENAME", "count", "count2"),
    key("COPY", "count", "lock", keep="done"),
    key("HSETNX", "h", "owner", "{own}", keep="done"),
    key("HDEL", "h", "owner", keep="done"),
    ("watch", "count", 0),
    ("watch", "lock", 300),
    ("multi", (("INCR", "count"), ("PEXPIRE", "count", 300))),
    ("multi", (("GET", "count"), ("DEL", "lock"))),
)


def one_counter(redis: Any) -> None:
    redis.flushall()
    redis.set("count", 5)


STREAM_READS = (
    key("XLEN", "s", keep="n"),
    key("XREADGROUP", "GROUP", "g", "c{own}", "COUNT", 1, "STREAMS", "s", ">", keep="done"),
    key("XREADGROUP", "GROUP", "g", "c{own}", "COUNT", 1, "BLOCK", 400, "STREAMS", "s", ">", keep="done"),
    key("XREAD", "COUNT", 1, "BLOCK", 400, "STREAMS", "s", "1-1", keep="done"),
    key("XRANGE", "s", "-", "+", keep="done"),
)
STREAM_WRITES = (
    key("XADD", "s", "*", "of", "{own}", keep="done"),
    key("XADD", "s", "MAXLEN", 1, "*", "of", "{own}", keep="done"),
    key("XTRIM", "s", "MAXLEN", 1, keep="n"),
    key("XACK", "s", "g", "1-1", keep="done"),
    key("XDEL", "s", "1-1", keep="done"),
    key("XGROUP", "SETID", "s", "g", "0"),
    key("DEL", "s", keep="done"),
    key("INCR", "count", keep="n"),
    ("multi", (("XADD", "s", "*", "of", "{own}"), ("INCR", "count"))),
)
#: what comes over a subscription is heard, or not
MESSAGE_READS = (("hear", 0.0), ("hear", 0.0), ("hear", 0.4), ("hear", 2.0), key("GET", "count", keep="n"))
MESSAGE_WRITES = (
    key("PUBLISH", "go", "{own}", keep="n"),
    key("PUBLISH", "go", "{n+own}", keep="done"),
    key("PUBLISH", "elsewhere", "{own}", keep="done"),
    key("SET", "count", "{n+own}"),
    key("INCR", "count", keep="n"),
    ("multi", (("INCR", "count"), ("PUBLISH", "go", "{own}"))),
    ("subscribe", "elsewhere"),
    ("unsubscribe", "go"),
)


def one_stream(redis: Any) -> None:
    one_counter(redis)
    redis.xgroup_create("s", "g", id="0", mkstream=True)
    redis.xadd("s", {"of": 0}, id="1-1")


def accounts_and_a_counter(sql: Any, redis: Any) -> None:
    two_accounts(sql)
    one_counter(redis)
