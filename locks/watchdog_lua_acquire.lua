-- Takes the lock and sets its lease in one step, as the article has it.
-- KEYS[1]  the lock
-- ARGV[1]  the holder's value
-- ARGV[2]  the lease in whole seconds
-- reply    1: taken · 0: another holds it
if redis.call('SETNX', KEYS[1], ARGV[1]) == 1 then
    redis.call('EXPIRE', KEYS[1], ARGV[2])
    return 1
end
return 0
