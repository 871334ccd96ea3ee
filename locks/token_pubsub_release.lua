-- Deletes the lock for the one whose token it holds, and tells everyone who waits.
-- KEYS[1]  the lock
-- KEYS[2]  the channel
-- ARGV[1]  the token
-- reply    1: deleted · 0: it is another's, or gone
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], 'free')
return 1
