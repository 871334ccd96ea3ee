-- Restarts the owner's lease.
-- KEYS[1]  the lock: a hash, owner → count of entries
-- ARGV[1]  the owner
-- ARGV[2]  the lease in milliseconds
-- reply    1: renewed · 0: not this owner's
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
