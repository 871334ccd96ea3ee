-- Restarts the lease of one permit, unless it is over.
-- KEYS[1]  the semaphore: a sorted set, owner's token → end of its lease (server time, ms)
-- ARGV[1]  the token
-- ARGV[2]  the lease in milliseconds; 0 gives the permit back
-- reply    1: done · 0: the lease was over, or never began
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if ARGV[2] == '0' then
    return redis.call('ZREM', KEYS[1], ARGV[1])
end
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
    return 0
end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
-- another owner's lease may be longer: its permit must not expire with this one
redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), ARGV[2]))
return 1
