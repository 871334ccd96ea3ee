-- Takes the lock, or a place in its queue. May be sent again with the same token at any time: a holder
-- finds itself the holder (with a new lease), a waiter keeps its place and is heard of.
-- Follows on fair_lock_take.lua.
-- KEYS     see fair_lock_queue.lua
-- ARGV[1]  'wait' · 'try': take no place in the queue
-- ARGV[2]  the lease in milliseconds
-- ARGV[3]  the token
-- reply    the fencing number: the lock is taken
--          {now, lease left}: queued (or busy, for 'try'), in ms of the server's clock
local waits, lease, me = ARGV[1] == 'wait', ARGV[2], ARGV[3]

local function join()
    if redis.call('HSET', KEYS[4], me, now_ms()) == 1 then
        redis.call('RPUSH', KEYS[3], me)
    end
end

if taken then
    -- The first number of all; or the last holder's lease ran out while others wait: they come first.
    if waits and redis.call('EXISTS', KEYS[3]) == 1 then
        join()
    end
    local holder = hand_over()
    if not holder then
        redis.call('SET', KEYS[1], me, 'PX', lease)
        return next_number()
    elseif holder == me then
        return tonumber(redis.call('GET', KEYS[2]))
    end
elseif holds(me) then
    redis.call('PEXPIRE', KEYS[1], lease)
    return tonumber(redis.call('GET', KEYS[2]))
elseif waits then
    join()
    if string.find(redis.call('GET', KEYS[1]), '^%x+:%d+:%d+$') then
        redis.call('APPEND', KEYS[1], '+')
    end
end
return {now_ms(), redis.call('PTTL', KEYS[1])}
