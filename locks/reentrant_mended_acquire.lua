-- Enters the lock if this owner has it. A first entry also succeeds if the lock is free; on a later entry a free lock
-- means that the owner has lost it. The count is set, not incremented, so a command that is sent twice counts once.
-- KEYS[1]  the lock: a hash, owner → count of entries
-- ARGV[1]  the owner
-- ARGV[2]  the lease in milliseconds
-- ARGV[3]  the count of entries after this one
-- reply    1: inside · 0: another holds it, or this owner lost it
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 or (ARGV[3] == '1' and redis.call('EXISTS', KEYS[1]) == 0) then
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return 1
end
return 0
