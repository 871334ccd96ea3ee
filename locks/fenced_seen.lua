-- Raises the fencing counter to a number that a store has seen, so that grants after a lost counter are above it.
-- KEYS[1]  the fencing counter
-- ARGV[1]  the number that the store has seen
-- reply    the counter's value now
if tonumber(redis.call('GET', KEYS[1]) or 0) < tonumber(ARGV[1]) then
    redis.call('SET', KEYS[1], ARGV[1])
end
return tonumber(redis.call('GET', KEYS[1]))
