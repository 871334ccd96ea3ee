-- All keys of the database, for comparing states. No KEYS.
-- ARGV: what the server shall note as the time of messages that were just delivered; none if nobody asks for it.
-- Reply: a list of [key, type, value, milliseconds left (-1: no lease), PEXPIRETIME].
-- A stream is described by its entries, by the last number that it gave out if that entry is gone, and by its groups: how
-- far each has read, which consumers it has, and what is pending, for which of them, delivered how often, and since
-- when, if somebody asks for it.

local OWN = 2^40

local function fields(reply)
  local told = {}
  for i = 1, #reply, 2 do told[reply[i]] = reply[i + 1] end
  return told
end

-- id → the time of its delivery. What the server has noted by itself is changed (streams.py).
local function since(key, group)
  local times = {}
  for _, each in ipairs(fields(redis.call('XINFO', 'STREAM', key, 'FULL', 'COUNT', '0')).groups) do
    local told = fields(each)
    for _, message in ipairs(told.name == group and told.pending or {}) do
      local id, consumer, at = unpack(message)
      if at >= OWN and #redis.call('XRANGE', key, id, id) > 0 then
        redis.call('XCLAIM', key, group, consumer, 0, id, 'TIME', ARGV[1], 'JUSTID')
        at = ARGV[1]
      end
      times[id] = string.format('%.0f', at)
    end
  end
  return times
end

local function stream(key)
  local value = redis.call('XRANGE', key, '-', '+')
  local last = fields(redis.call('XINFO', 'STREAM', key))['last-generated-id']
  if #value == 0 or value[#value][1] ~= last then value[#value + 1] = {'last', last} end
  for _, each in ipairs(redis.call('XINFO', 'GROUPS', key)) do
    local group, who = fields(each), {}
    for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', key, group.name)) do who[#who + 1] = fields(consumer).name end
    table.sort(who)
    local pending = redis.call('XPENDING', key, group.name, '-', '+', 10000)
    local times = ARGV[1] and since(key, group.name) or {}
    for _, message in ipairs(pending) do message[3], message[4] = message[4], times[message[1]] end
    value[#value + 1] = {'group', group.name, group['last-delivered-id'], who, pending}
  end
  return value
end

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
  elseif kind == 'stream' then value = stream(key)
  else value = redis.call('DUMP', key)
  end
  found[#found + 1] = {key, kind, value, redis.call('PTTL', key), tostring(redis.call('PEXPIRETIME', key))}
end
return found
