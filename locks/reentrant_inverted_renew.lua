-- Meant to restart the owner's lease, as first published. But the condition is inverted, and 0 is true in Lua, so both
-- `not 0` and `not 1` are false. It never renews.
-- KEYS[1]  the lock: a hash, owner → count of entries
-- ARGV[1]  the owner
-- ARGV[2]  the lease in milliseconds
-- reply    0, always
if not redis.call('HEXISTS', KEYS[1], ARGV[1]) then
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
