-- Takes the lock and its fencing number in one step.
-- KEYS[1]  the lock
-- KEYS[2]  the fencing counter: never expires, never goes down
-- ARGV[1]  the token
-- ARGV[2]  the lease in milliseconds
-- reply    the fencing number · nil: another holds the lock
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    return redis.call('INCR', KEYS[2])
end
return false
