-- Answers the oldest orders, takes them off the queue unless a newer owner reads it, and returns the next ones.
-- KEYS[1]  the queue
-- KEYS[2]  the fencing number of the owner that reads the queue
-- KEYS[3…] the lists of one answer that the orders' callers wait for, in the order of the queue
-- ARGV[1]  the caller's fencing number
-- ARGV[2]  milliseconds that an answer waits for its caller
-- ARGV[3]  how many orders to return at most
-- ARGV[4…] the answers
-- reply    the oldest orders that are left · nil: another one owns the queue
for n = 3, #KEYS do
    redis.call('RPUSH', KEYS[n], ARGV[n + 1])
    redis.call('PEXPIRE', KEYS[n], ARGV[2])
end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
    return false
end
redis.call('LTRIM', KEYS[1], #KEYS - 2, -1)
return redis.call('LRANGE', KEYS[1], 0, ARGV[3] - 1)
