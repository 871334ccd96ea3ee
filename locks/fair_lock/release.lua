-- Gives the lock to the first waiter that can be reached, or frees it. Continues hand.lua.
-- KEYS     see queue.lua
-- ARGV[1]  the token
-- reply    2: handed over · 1: freed
--          0 or less: another holds it, or it is gone. The reply is minus 'since': numbers below 'since' are from
--          before a loss of data
if mine or holds(me, redis.call('GET', KEYS[1])) then
    return hand_over(heir) and 2 or 1
end
return -tonumber(redis.call('HGET', KEYS[2], 'since') or 0)
