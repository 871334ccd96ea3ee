-- Gives the lock to the first waiter that can be reached, or frees it. Follows on hand.lua.
-- KEYS     see queue.lua
-- ARGV[1]  the token
-- reply    2: handed over · 1: freed
--          0 or less: it is another's, or gone. Minus 'since': numbers below it are from before a loss of data
if mine or holds(me, redis.call('GET', KEYS[1])) then
    return hand_over(heir) and 2 or 1
end
return -tonumber(redis.call('HGET', KEYS[2], 'since') or 0)
