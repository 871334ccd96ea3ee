-- Writes a posting over the current contents: balances, entries and the key's record, all or nothing.
-- KEYS[1]      the record of the idempotency key
-- KEYS[2i]     the hash of the i-th account
-- KEYS[2i+1]   the list of its entries
-- ARGV[1]      the fingerprint of the request
-- ARGV[4i-2]   the new balance
-- ARGV[4i-1]   the new version
-- ARGV[4i]     the new head
-- ARGV[4i+1]   the entry, as JSON
-- reply        1: written · 0: this key was used before · -1: an account is gone
if redis.call('EXISTS', KEYS[1]) == 1 then
    return 0
end
for i = 2, #KEYS, 2 do
    if redis.call('EXISTS', KEYS[i]) == 0 then
        return -1
    end
end
local entries = {}
for i = 1, (#KEYS - 1) / 2 do
    redis.call('HSET', KEYS[2 * i], 'balance', ARGV[4 * i - 2], 'version', ARGV[4 * i - 1], 'head', ARGV[4 * i])
    redis.call('RPUSH', KEYS[2 * i + 1], ARGV[4 * i + 1])
    entries[i] = ARGV[4 * i + 1]
end
redis.call('SET', KEYS[1], '{"fingerprint":"' .. ARGV[1] .. '","entries":[' .. table.concat(entries, ',') .. ']}')
return 1
