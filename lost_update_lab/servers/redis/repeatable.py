"""Which commands get the same answer whenever the same keys are there, and what a MULTI has queued so far."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lost_update_lab.servers.redis.commands import subscribes
from lost_update_lab.servers.redis.scripts import called

_REPEATABLE = frozenset(
    b"BLMOVE BLPOP BRPOP BRPOPLPUSH BZPOPMAX BZPOPMIN "
    b"APPEND COPY DECR DECRBY DEL DELIFEQ DISCARD ECHO EVAL EVALSHA EXEC EXISTS EXPIRE GET GETBIT GETDEL GETEX "
    b"GETRANGE GETSET HDEL HEXISTS HGET HGETALL HINCRBY HINCRBYFLOAT HKEYS HLEN HMGET HMSET HSET HSETNX HVALS "
    b"INCR INCRBY INCRBYFLOAT LINDEX LINSERT LLEN LMOVE LPOP LPOS LPUSH LPUSHX LRANGE LREM LSET LTRIM MGET "
    b"MSET MSETNX MULTI PERSIST PEXPIRE PING PSETEX PTTL PUBLISH RENAME RENAMENX RPOP RPOPLPUSH RPUSH RPUSHX "
    b"SADD SCARD SET SETBIT SETEX SETNX SETRANGE SISMEMBER SMISMEMBER SPOP SREM STRLEN TIME TTL TYPE UNLINK UNWATCH "
    b"WAIT WAITAOF WATCH XACK XADD XAUTOCLAIM XCLAIM XDEL XGROUP XLEN XPENDING XRANGE XREAD XREADGROUP XREVRANGE XTRIM "
    b"ZADD ZCARD ZCOUNT ZINCRBY ZMSCORE ZPOPMAX ZPOPMIN ZRANGE ZRANGEBYSCORE ZRANK ZREM "
    b"ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANK ZSCORE".split()
)
CHANCE = re.compile(rb"\brandom\b|\bos\s*\.")


def queued_after(queued: bytes | None, words: Sequence[bytes], sent: bytes) -> bytes | None:
    """What a session has queued after this command. None: that is no longer known."""
    name = words[0].upper()
    if name in (b"EXEC", b"DISCARD"):
        return b""
    if queued is None or name == b"MULTI" or queued:
        return None if queued is None else queued + sent
    return b""


def repeatable(words: Sequence[bytes], script: bytes | None) -> bool:
    """Does it get the same answer whenever the same keys are there, with the same values?

    `script`: the text of the script that the command calls; None: it is not known, or none is called."""
    name = words[0].upper()
    if subscribes(words):
        return True
    if name not in _REPEATABLE:
        return False
    if name not in (b"EVAL", b"EVALSHA"):
        return True
    if script is None or CHANCE.search(script):
        return False
    names = called(script)
    return names is not None and names <= _REPEATABLE
