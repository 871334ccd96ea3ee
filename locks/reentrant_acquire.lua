-- Enters the lock if it is free or this owner already has it, and counts the entry.
-- KEYS[1]  the lock: a hash, owner → count of entries
-- ARGV[1]  the owner
-- ARGV[2]  the lease in milliseconds
-- reply    1: inside · 0: another holds it
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
    redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return 1
end
return 0
