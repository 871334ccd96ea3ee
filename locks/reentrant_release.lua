-- Leaves the lock once; the last exit deletes it.
-- KEYS[1]  the lock: a hash, owner → count of entries
-- ARGV[1]  the owner
-- reply    1: free now · 0: still inside · nil: not this owner's
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return false
end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
    return 0
end
return redis.call('DEL', KEYS[1])
