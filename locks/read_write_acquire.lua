-- Enters as a reader or as the writer, after dropping those whose lease is over. The time is the server's. A client that
-- did not hear the reply, and sends it again, finds itself inside, with a new lease.
-- KEYS[1]  the lock: a sorted set, kind and token → end of the lease (server time, ms). Kinds: r reads, w writes,
--          i is a writer that waits and keeps new readers out
-- ARGV[1]  the kind and the token: r… or w…
-- ARGV[2]  the lease in milliseconds
-- ARGV[3]  for how many milliseconds a writer that is refused keeps new readers out
-- reply    1: inside · 0: refused
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local writes = string.sub(ARGV[1], 1, 1) == 'w'
local waiting = 'i' .. string.sub(ARGV[1], 2)

local function enter(member, milliseconds)
    redis.call('ZADD', KEYS[1], now + milliseconds, member)
    -- another one's lease may be longer: it must not end with this one's
    redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), milliseconds))
end

local refused = false
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
    for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
        local kind = string.sub(member, 1, 1)
        refused = refused or kind == 'w' or (writes and kind == 'r') or (not writes and kind == 'i')
    end
end
if refused then
    if writes then
        enter(waiting, ARGV[3])
    end
    return 0
end
redis.call('ZREM', KEYS[1], waiting)
enter(ARGV[1], ARGV[2])
return 1
