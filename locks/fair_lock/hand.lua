-- The usual hand-over comes first, so that the server does not build functions that only the rarer cases use.
-- KEYS, ARGV, reply: see queue.lua and release.lua
local me = ARGV[1]
local mine = redis.call('GET', KEYS[1]) == me .. '+'
local heir = mine and redis.call('LPOP', KEYS[3])
if heir then
    redis.call('SET', KEYS[1], heir .. '+', 'PX', string.sub(heir, 34))
    local number = redis.call('HINCRBY', KEYS[2], 'number', 1)
    if number == 1 then
        redis.call('DEL', KEYS[2]) -- the fence was lost: next_number() starts a new one
    elseif redis.call('PUBLISH', string.sub(heir, 1, 16), string.format('%s %.0f', heir, number)) > 0 then
        return 2
    else
        heir = false -- the message reached nobody
    end
end
