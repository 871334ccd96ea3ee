-- What the scripts of fair-lock share; put before each of them. All keys lie in one hash slot.
-- KEYS[1]  the lock: the holder's token, and a '+' behind it once anybody waited; expires with the lease
-- KEYS[2]  the fencing counter: never expires, never goes down
-- KEYS[3]  the queue: the waiters' tokens, first come first
-- KEYS[4]  what is known, a hash: each waiter's token → when it was last heard of, in ms of the server's clock;
--          'since' → the fencing number before the first: it tells whether data was lost after a number
-- A token is <channel>:<count>:<lease in ms>; its owner listens on that channel.

local function holds(token)
    local value = redis.call('GET', KEYS[1])
    return value == token or value == token .. '+'
end

local function now_ms()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The next fencing number. A counter that is not there (first use, data loss) starts at the clock in
-- microseconds: above every number that was given before the loss.
local function next_number()
    local number = redis.call('INCR', KEYS[2])
    if number == 1 then
        local time = redis.call('TIME')
        number = time[1] * 1000000 + time[2]
        redis.call('SET', KEYS[2], string.format('%.0f', number))
        redis.call('HSET', KEYS[4], 'since', string.format('%.0f', number))
    end
    return number
end

-- Makes the first living waiter the holder and wakes it; frees the lock if nobody waits. Dead is who was
-- not heard of for as long as its lease, or whom PUBLISH does not reach because its connection is gone.
-- Returns the new holder's token, or false.
local function hand_over()
    local waiter = redis.call('LPOP', KEYS[3])
    while waiter do
        local heard = redis.call('HGET', KEYS[4], waiter)
        if heard then
            redis.call('HDEL', KEYS[4], waiter)
            local now = now_ms()
            local channel, lease = string.match(waiter, '^(%x+):%d+:(%d+)$')
            if now - heard < tonumber(lease) then
                redis.call('SET', KEYS[1], waiter .. '+', 'PX', lease)
                local number = string.format('%.0f', next_number())
                if redis.call('PUBLISH', channel, waiter .. ' ' .. number .. ' ' .. now) > 0 then
                    return waiter
                end
            end
        end
        waiter = redis.call('LPOP', KEYS[3])
    end
    redis.call('DEL', KEYS[1])
    return false
end
