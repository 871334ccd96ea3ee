"""Which commands answer the same whenever the same keys are there, with the same values?

Not those whose answer depends on other clients, on chance, on real time, or on what no look at the keys shows: consumer
groups, fields with an end of their own, other databases, the order in a set.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_REPEATABLE = frozenset(
    b"APPEND COPY DECR DECRBY DEL DELIFEQ DISCARD ECHO EVAL EVALSHA EXEC EXISTS EXPIRE GET GETBIT GETDEL GETEX "
    b"GETRANGE GETSET HDEL HEXISTS HGET HGETALL HINCRBY HINCRBYFLOAT HKEYS HLEN HMGET HMSET HSET HSETNX HVALS INCR "
    b"INCRBY INCRBYFLOAT LINDEX LINSERT LLEN LMOVE LPOP LPOS LPUSH LPUSHX LRANGE LREM LSET LTRIM MGET MSET MSETNX "
    b"MULTI PERSIST PEXPIRE PING PSETEX PTTL PUBLISH RENAME RENAMENX RPOP RPOPLPUSH RPUSH RPUSHX SADD SCARD SET "
    b"SETBIT SETEX SETNX SETRANGE SISMEMBER SMISMEMBER SREM STRLEN TIME TTL TYPE UNLINK ZADD ZCARD ZCOUNT ZINCRBY "
    b"ZMSCORE ZPOPMAX ZPOPMIN ZRANGE ZRANGEBYSCORE ZRANK ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANK "
    b"ZSCORE".split()
)
_CALL = re.compile(rb"\b(?:redis|server)\.p?call\b")
_CALLED = re.compile(rb"\b(?:redis|server)\.p?call\s*\(\s*['\"](\w+)['\"]")
_CHANCE = re.compile(rb"\brandom\b|\bos\s*\.")


def repeatable(words: Sequence[bytes], script: bytes | None) -> bool:
    """`script`: the text of the one that the command calls; None: it is not known, or none is called."""
    name = words[0].upper()
    if name not in _REPEATABLE:
        return False
    if name not in (b"EVAL", b"EVALSHA"):
        return True
    if script is None or _CHANCE.search(script):
        return False
    called = _CALLED.findall(script)
    return len(called) == len(_CALL.findall(script)) and all(each.upper() in _REPEATABLE for each in called)
