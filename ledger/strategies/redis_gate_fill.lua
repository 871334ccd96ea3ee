-- Tells the gate what is left, unless it knows already, or was told to forget since the token was there.
-- KEYS[1]  what is left above the account's floor; a guess that expires
-- KEYS[2]  the token: deleted together with the guess
-- ARGV[1]  the token, as it was before the database was asked
-- ARGV[2]  what the database said
-- ARGV[3]  seconds until the guess expires
-- reply    1: told · 0: not
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
    return 0
end
return redis.call('SET', KEYS[1], ARGV[2], 'NX', 'EX', ARGV[3]) and 1 or 0
