"""Which commands answer the same whenever the same keys are there, with the same values?

Not those whose answer depends on other clients, on chance, on real time, or on what no look at the keys shows: consumer
groups, fields with an end of their own, other databases, the order in a set. WAIT and WAITAOF are, while the replicas
follow (memory.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_REPEATABLE = frozenset(
    b"APPEND COPY DECR DECRBY DEL DELIFEQ DISCARD ECHO EVAL EVALSHA EXEC EXISTS EXPIRE GET GETBIT GETDEL "
    b"GETEX GETRANGE GETSET HDEL HEXISTS HGET HGETALL HINCRBY HINCRBYFLOAT HKEYS HLEN HMGET HMSET HSET "
    b"HSETNX HVALS INCR INCRBY INCRBYFLOAT LINDEX LINSERT LLEN LMOVE LPOP LPOS LPUSH LPUSHX LRANGE LREM "
    b"LSET LTRIM MGET MSET MSETNX MULTI PERSIST PEXPIRE PING PSETEX PTTL PUBLISH RENAME RENAMENX RPOP "
    b"RPOPLPUSH RPUSH RPUSHX SADD SCARD SET SETBIT SETEX SETNX SETRANGE SISMEMBER SMISMEMBER SREM STRLEN "
    b"TIME TTL TYPE UNLINK WAIT WAITAOF ZADD ZCARD ZCOUNT ZINCRBY ZMSCORE ZPOPMAX ZPOPMIN ZRANGE "
    b"ZRANGEBYSCORE ZRANK ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANK ZSCORE".split()
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
