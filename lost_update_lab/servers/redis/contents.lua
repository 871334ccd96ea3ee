-- All keys of the database, for comparing states. No KEYS, no ARGV.
-- Reply: a list of [key, type, value, milliseconds left (-1: no lease), PEXPIRETIME].
local found = {}
local keys = redis.call('KEYS', '*')
table.sort(keys)
for _, key in ipairs(keys) do
  local kind = redis.call('TYPE', key).ok
  local value
  if kind == 'string' then value = redis.call('GET', key)
  elseif kind == 'hash' then
    value = redis.call('HGETALL', key)
  elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'set' then value = redis.call('SMEMBERS', key); table.sort(value)
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'stream' then value = redis.call('XRANGE', key, '-', '+')
  else value = redis.call('DUMP', key)
  end
  found[#found + 1] = {key, kind, value, redis.call('PTTL', key), tostring(redis.call('PEXPIRETIME', key))}
end
return found
