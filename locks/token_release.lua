-- Deletes a lock, but only if it holds this token.
-- KEYS[1]  the lock
-- ARGV[1]  the token
-- reply    1: deleted · 0: another holds it, or it is gone

if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
