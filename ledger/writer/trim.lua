-- Takes the answered requests off the queue, unless a newer owner reads it.
-- KEYS[1]  the queue
-- KEYS[2]  the fencing number of the owner that reads the queue
-- ARGV[1]  the caller's fencing number
-- ARGV[2]  how many requests
-- reply    1: taken off · 0: another one owns the queue
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
    return 0
end
redis.call('LTRIM', KEYS[1], ARGV[2], -1)
return 1
