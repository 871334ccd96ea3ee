-- Takes the lock, or says how long its lease may last. A client that did not get the reply, and sends this again, holds
-- the lock with a new lease.
-- KEYS[1]  the lock
-- ARGV[1]  the token
-- ARGV[2]  the lease in milliseconds
-- reply    nil: taken · otherwise the milliseconds that are left of the holder's lease (-1: it has none)
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    return false
end
if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return false
end
return redis.call('PTTL', KEYS[1])
