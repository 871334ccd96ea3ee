-- Takes the lock, or a place in its queue. Continues take.lua.
-- KEYS     see queue.lua
-- ARGV[1]  'first': the first question with this token
--          'quiet': the same, sent after CLIENT REPLY SKIP. A number comes as a message, as after a hand-over, or not
--          at all, so that a caller that has to queue is not woken just to hear it
--          'again': any later question. A holder learns that it holds the lock, with a new lease. A waiter keeps its
--          place and counts as heard of
--          'try': takes no place
-- ARGV[2]  the lease in milliseconds
-- ARGV[3]  the token
-- reply    the fencing number: the lock is taken
--          below 0: queued (for 'try': busy). Its absolute value is the ms that are left of the holder's lease
local function now_ms()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A token that was handed the lock is still recorded as heard of: pruning now and then is cheaper than at hand-overs.
local function prune()
    if redis.call('HLEN', KEYS[4]) <= 2 * redis.call('LLEN', KEYS[3]) + 64 then
        return
    end
    local waits = {}
    for _, token in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
        waits[token] = true
    end
    for _, token in ipairs(redis.call('HKEYS', KEYS[4])) do
        if not waits[token] then
            redis.call('HDEL', KEYS[4], token)
        end
    end
end

local function join()
    if mode == 'first' or not redis.call('LPOS', KEYS[3], me) then
        redis.call('RPUSH', KEYS[3], me)
    end
    if mode == 'again' then
        redis.call('HSET', KEYS[4], me, now_ms())
        redis.call('PEXPIRE', KEYS[4], math.max(redis.call('PTTL', KEYS[4]), 3 * lease))
        prune()
    end
end

-- A lease ran out while others wait: the holder died, and others may have died with it. The lock goes to the first
-- waiter that was heard of lately. A waiter that was not counts as missed from now on. A waiter that is missed for its
-- whole lease leaves the queue.
local function recover()
    local now, heir = now_ms(), nil
    for _, token in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
        local heard = tonumber(redis.call('HGET', KEYS[4], token) or 0)
        if heard == 0 then
            redis.call('HSET', KEYS[4], token, -now)
            redis.call('PEXPIRE', KEYS[4], math.max(redis.call('PTTL', KEYS[4]), 3 * lease_of(token)))
        elseif now - math.abs(heard) >= tonumber(lease_of(token)) then
            redis.call('LREM', KEYS[3], 1, token)
            redis.call('HDEL', KEYS[4], token)
        elseif heard > 0 and not heir then
            redis.call('LREM', KEYS[3], 1, token)
            heir = grant(token) and token
        end
    end
    return heir or hand_over()
end

if not holder then
    if mode ~= 'try' and redis.call('EXISTS', KEYS[3]) == 1 then
        join()
    end
    holder = recover()
    if not holder then
        redis.call('SET', KEYS[1], me, 'PX', lease)
        return next_number()
    elseif holder == me then
        return tonumber(redis.call('HGET', KEYS[2], 'number'))
    end
elseif mode ~= 'first' and holds(me, holder) then
    redis.call('PEXPIRE', KEYS[1], lease)
    return tonumber(redis.call('HGET', KEYS[2], 'number'))
elseif mode ~= 'try' then
    join()
    mark(holder)
end
local left = redis.call('PTTL', KEYS[1])
return -(left < 0 and FOREVER or left + 1)
