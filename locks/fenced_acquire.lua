-- Takes the lock and its fencing number in one step. A client that did not get the reply, and sends this again, holds
-- the lock with a new lease and a new number: nobody has seen the first number.
-- KEYS[1]  the lock
-- KEYS[2]  the fencing counter: never expires, never goes down
-- ARGV[1]  the token
-- ARGV[2]  the lease in milliseconds
-- reply    the fencing number · nil: another holds the lock
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then
        return false
    end
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return redis.call('INCR', KEYS[2])
