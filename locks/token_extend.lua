-- Restarts the lease, but only if the lock holds this token.
-- KEYS[1]  the lock
-- ARGV[1]  the token
-- ARGV[2]  the lease in milliseconds
-- reply    1: extended · 0: another holds it, or it is gone
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
