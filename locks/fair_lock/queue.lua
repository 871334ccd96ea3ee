-- What the scripts of fair-lock share; it is put in front of each. All keys are in one hash slot.
-- KEYS[1]  the lock: the holder's token, with a '+' appended once any caller has waited; expires with the lease
-- KEYS[2]  the fence, a hash that never expires: 'number', the last one given; 'since', the one before the first
-- KEYS[3]  the queue: the waiters' tokens, in the order of arrival
-- KEYS[4]  the waiters that were heard of after they joined, a hash: token → when, in ms of the server's clock;
--          a negative time: not heard of, and missed since then
-- A token is <channel, 16 digits>:<count, 15 digits>:<lease in ms>; its owner listens on that channel.

local function holds(token, value)
    return value == token or value == token .. '+'
end

local function lease_of(token)
    return string.sub(token, 34) -- by its place: a pattern costs as much as a command
end

-- The next fencing number. A missing fence (first use, data loss) starts at the clock in microseconds, which is above
-- every number that was given before the loss.
local function next_number()
    local number = redis.call('HINCRBY', KEYS[2], 'number', 1)
    if number == 1 then
        local time = redis.call('TIME')
        number = time[1] * 1000000 + time[2]
        local text = string.format('%.0f', number)
        redis.call('HSET', KEYS[2], 'number', text, 'since', text)
    end
    return number
end

-- Makes a waiter the holder and wakes it. False: PUBLISH reaches nobody, so the connection is gone: it counts as dead.
local function grant(token)
    redis.call('SET', KEYS[1], token .. '+', 'PX', lease_of(token))
    local message = token .. ' ' .. string.format('%.0f', next_number())
    return redis.call('PUBLISH', string.sub(token, 1, 16), message) > 0
end

-- Gives the lock to the first waiter that can be reached, or frees it if there is none. Returns the new holder.
-- `heir`: the first waiter, if it has already been taken from the queue.
local function hand_over(heir)
    local token = heir or redis.call('LPOP', KEYS[3])
    while token do
        if grant(token) then
            return token
        end
        token = redis.call('LPOP', KEYS[3])
    end
    redis.call('DEL', KEYS[1])
    return nil
end
