-- Takes an amount out of what the gate believes is left.
-- KEYS[1]  what is left above the account's floor; a guess that expires
-- ARGV[1]  the amount to take, above 0
-- reply    1: go on and ask the database · 0: there is not enough · nil: the gate does not know
if redis.call('EXISTS', KEYS[1]) == 0 then
    return false
end
if tonumber(redis.call('DECRBY', KEYS[1], ARGV[1])) < 0 then
    redis.call('INCRBY', KEYS[1], ARGV[1])
    return 0
end
return 1
