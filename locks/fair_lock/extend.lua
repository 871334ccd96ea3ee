-- Restarts the holder's lease.
-- KEYS     see queue.lua
-- ARGV[1]  the lease in milliseconds
-- ARGV[2]  the token
-- reply    1: done · 0: another holds it, or it is gone
if holds(ARGV[2], redis.call('GET', KEYS[1])) then
    return redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return 0
