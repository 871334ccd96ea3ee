-- Deletes the lock if it holds this token, and tells every waiter.
-- KEYS[1]  the lock
-- KEYS[2]  the channel
-- ARGV[1]  the token
-- reply    1: deleted · 0: another holds it, or it is gone
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], 'free')
return 1
