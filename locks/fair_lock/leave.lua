-- Takes a waiter out of the queue, unless the lock was handed to it just now.
-- KEYS     see queue.lua
-- ARGV[1]  the lease in milliseconds, which restarts if the token holds the lock
-- ARGV[2]  the token
-- reply    the fencing number: it holds the lock · 0: it neither holds the lock nor waits any more
if holds(ARGV[2], redis.call('GET', KEYS[1])) then
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
    return tonumber(redis.call('HGET', KEYS[2], 'number'))
end
redis.call('LREM', KEYS[3], 1, ARGV[2])
redis.call('HDEL', KEYS[4], ARGV[2])
return 0
