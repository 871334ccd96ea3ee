-- A token lock with a queue: a holder that leaves hands the lock to the first live waiter, and wakes only that one.
-- KEYS[1]  the lock: the holder's token, with the lease
-- KEYS[2]  the queue: a list of the waiters' tokens, in the order of arrival
-- KEYS[3]  the live waiters: a sorted set, token → until when it counts as alive (server time, ms)
-- ARGV[1]  enter · leave (release, or give up waiting)
-- ARGV[2]  the token
-- ARGV[3]  the lease in milliseconds; also how long a waiter counts as alive after it last asked
-- ARGV[4]  prefix of the wake lists, one for each waiter
-- reply    enter: 1: inside · 0: queued     leave: 1: it was the holder · 0: it was not
local lock, queue, living = KEYS[1], KEYS[2], KEYS[3]
local token, lease, wake = ARGV[2], ARGV[3], ARGV[4]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function forget(waiter)
    redis.call('LREM', queue, 1, waiter)
    redis.call('ZREM', living, waiter)
end

-- Gives the free lock to the first live waiter, and drops the dead ones ahead of it. Returns that waiter, or nil.
local function hand_over()
    while true do
        local first = redis.call('LINDEX', queue, 0)
        if not first then
            return nil
        end
        local lives_until = tonumber(redis.call('ZSCORE', living, first) or 0)
        forget(first)
        if lives_until > now then -- about two thirds of its own lease, if it sleeps; once awake it takes a whole one
            redis.call('SET', lock, first, 'PX', lives_until - now)
            redis.call('RPUSH', wake .. first, 1)
            redis.call('PEXPIRE', wake .. first, lives_until - now)
            return first
        end
    end
end

local holder = redis.call('GET', lock)
if ARGV[1] == 'leave' then
    forget(token)
    if holder ~= token then
        return 0
    end
    redis.call('DEL', lock, wake .. token) -- the lock may have been handed to a waiter that never woke
    hand_over()
    return 1
end

if holder == token then
    redis.call('PEXPIRE', lock, lease)
    return 1
end
if not redis.call('ZSCORE', living, token) then
    redis.call('RPUSH', queue, token)
end
redis.call('ZADD', living, now + lease, token)
for _, key in ipairs({living, queue}) do -- another waiter's lease may be longer
    redis.call('PEXPIRE', key, math.max(redis.call('PTTL', key), 2 * lease))
end
if not holder and hand_over() == token then
    redis.call('DEL', wake .. token)
    return 1
end
return 0
