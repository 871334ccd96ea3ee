-- Adds a posting's amounts to balances: checks, additions, entries and the key's record in one step.
-- Balances are 64-bit, Lua's numbers are not: HINCRBY adds, and balances are compared as decimal strings.
-- KEYS[1]      the record of the idempotency key
-- KEYS[2i]     the hash of the i-th account
-- KEYS[2i+1]   the list of its entries
-- ARGV[1]      the fingerprint of the request
-- ARGV[3i-1]   the amount
-- ARGV[3i]     the id of the new entry
-- ARGV[3i+1]   the entry's JSON as far as the client knows it: an object without its closing brace
-- reply        the key's record · 0: this key was used before · an error that begins with REFUSED · the server's
--              own error, without anything written: it is full, read-only, or has too few replicas

-- Is the decimal string a less than b?
local function less(a, b)
    local a_negative, b_negative = a:sub(1, 1) == '-', b:sub(1, 1) == '-'
    if a_negative ~= b_negative then
        return a_negative
    end
    if a_negative then
        a, b = b:sub(2), a:sub(2)
    end
    if #a ~= #b then
        return #a < #b
    end
    return a < b
end

local function opposite(amount)
    return amount:sub(1, 1) == '-' and amount:sub(2) or '-' .. amount
end

if redis.call('EXISTS', KEYS[1]) == 1 then
    return 0
end
local count = (#KEYS - 1) / 2
local before, refused = {}, nil
for i = 1, count do
    local account, amount = KEYS[2 * i], ARGV[3 * i - 1]
    local read = redis.call('HMGET', account, 'balance', 'floor')
    before[i] = read[1]
    local added = read[1] and redis.pcall('HINCRBY', account, 'balance', amount)
    local failed = type(added) == 'table' and added
    if not added then
        refused = 'REFUSED no such account in this book'
    elseif failed and failed.err:find('overflow', 1, true) then
        refused = 'REFUSED ' .. read[1] .. ' ' .. amount .. ' leaves the range of BIGINT'
    elseif read[2] and amount:sub(1, 1) == '-' and less(redis.call('HGET', account, 'balance'), read[2]) then
        redis.call('HINCRBY', account, 'balance', opposite(amount))
        refused = 'REFUSED the account has ' .. read[1] .. ': ' .. amount .. ' would break ' .. read[2]
    end
    if refused or failed then
        for j = 1, i - 1 do
            redis.call('HINCRBY', KEYS[2 * j], 'balance', opposite(ARGV[3 * j - 1]))
        end
        return refused and redis.error_reply(refused) or failed
    end
end
local entries = {}
for i = 1, count do
    local account = KEYS[2 * i]
    local parent = redis.call('HGET', account, 'head')
    redis.call('HSET', account, 'head', ARGV[3 * i])
    redis.call('HINCRBY', account, 'version', 1)
    entries[i] = ARGV[3 * i + 1] .. ',"balance_before":' .. before[i]
        .. ',"balance_after":' .. redis.call('HGET', account, 'balance')
        .. ',"parent":' .. (parent and '"' .. parent .. '"' or 'null') .. '}'
    redis.call('RPUSH', KEYS[2 * i + 1], entries[i])
end
local record = '{"fingerprint":"' .. ARGV[1] .. '","entries":[' .. table.concat(entries, ',') .. ']}'
redis.call('SET', KEYS[1], record)
return record
