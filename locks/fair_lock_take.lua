-- The short way: the lock is free, nobody waits, and a number was given before. First of all, so that the
-- server need not build what only the longer ways use.
-- KEYS, ARGV, reply: see fair_lock_queue.lua and fair_lock_acquire.lua
local holder = redis.call('SET', KEYS[1], ARGV[3], 'NX', 'GET', 'PX', ARGV[2])
if not holder and redis.call('EXISTS', KEYS[3]) == 0 then
    local number = redis.call('HINCRBY', KEYS[2], 'number', 1)
    if number > 1 then
        return number
    end
    redis.call('DEL', KEYS[2])
end
