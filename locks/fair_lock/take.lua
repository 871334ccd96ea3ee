-- The usual cases come first, so that the server does not build functions that only the rarer cases use.
-- KEYS, ARGV, reply: see queue.lua and acquire.lua
local mode, lease, me = ARGV[1], ARGV[2], ARGV[3]
local FOREVER = 1000000000 -- stands for the lease of a foreign value that has none

-- Tells the holder that a caller waits. A foreign value is left alone.
local function mark(holder)
    if string.find(holder, '^%x+:%d+:%d+$') then
        redis.call('APPEND', KEYS[1], '+')
    end
end

local holder = redis.call('SET', KEYS[1], me, 'NX', 'GET', 'PX', lease)
if holder and (mode == 'quiet' or mode == 'first') then -- another holds it, and this token is new
    redis.call('RPUSH', KEYS[3], me)
    if string.sub(holder, -1) ~= '+' then
        mark(holder)
    end
    if mode == 'quiet' then
        return 0
    end
    local left = redis.call('PTTL', KEYS[1])
    return -(left < 0 and FOREVER or left + 1)
elseif not holder and redis.call('EXISTS', KEYS[3]) == 0 then
    local number = redis.call('HINCRBY', KEYS[2], 'number', 1)
    if number > 1 then
        if mode == 'quiet' then
            redis.call('PUBLISH', string.sub(me, 1, 16), me .. ' ' .. string.format('%.0f', number))
        end
        return number
    end
    redis.call('DEL', KEYS[2])
end
