-- Deletes a lock only for the one whose token it holds.
-- KEYS[1]  the lock
-- ARGV[1]  the token
-- reply    1: deleted · 0: it is another's, or gone
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
