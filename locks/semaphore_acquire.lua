-- Takes one of the permits, after dropping those whose lease is over. The time is the server's. A client that did not
-- get the reply, and sends this again, keeps its permit with a new lease.
-- KEYS[1]  the semaphore: a sorted set, owner's token → end of its lease (server time, ms)
-- ARGV[1]  the token
-- ARGV[2]  the lease in milliseconds
-- ARGV[3]  the number of permits
-- reply    1: taken · 0: all permits are out
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
    return 0
end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
-- another owner's lease may be longer: its permit must not expire with this one
redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), ARGV[2]))
return 1
