-- Leaves the lock once; the last exit deletes it.
-- KEYS[1]  the lock: a hash, owner → count of entries
-- ARGV[1]  the owner
-- ARGV[2]  the count of entries that remain
-- reply    1: done · 0: not this owner's
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return 0
end
if ARGV[2] == '0' then
    redis.call('DEL', KEYS[1])
else
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
return 1
