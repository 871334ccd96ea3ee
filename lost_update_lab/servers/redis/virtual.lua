-- The server's clock and its leases as a script sees them, put before the text of a worker's script (leases.py,
-- scripts.py, streams.py).
-- No KEYS, no ARGV. What follows: the leases that are there, {key = milliseconds left}, the time of day, 's', 'µs',
-- and the number of this grant.
local redis = (function(real, left, seconds, micros, serial)
  local BASE, SLOT, MOST = 2^40, 2^20, 2^32 - 1
  local UNIT = {EX = 1000, PX = 1, EXAT = 1000, PXAT = 1}
  local EXPIRE = {EXPIRE = 'EX', PEXPIRE = 'PX', EXPIREAT = 'EXAT', PEXPIREAT = 'PXAT'}
  local LOOK = {TTL = 1000, PTTL = 1, EXPIRETIME = 1000, PEXPIRETIME = 1}
  local MOVES = {RENAME = true, RENAMENX = true, COPY = true}
  local clock = seconds * 1000 + math.floor(micros / 1000)
  local given = {}
  local function length(unit, value)
    local ms = tonumber(value)
    if not ms then return nil end
    ms = ms * UNIT[unit] - (#unit == 4 and clock or 0)
    return ms > 0 and math.min(ms, MOST) or nil
  end
  local function coded(ms) return string.format('%.0f', BASE + ms * SLOT - SLOT / 2 + serial) end
  local function remaining(key, ms)
    if ms < BASE / 2 then return ms end
    key = tostring(key)
    return not given[key] and left[key] or math.ceil((ms - BASE) / SLOT)
  end
  -- Has the command given a lease? With GET, SET replies with the old value, whether or not it has set the key.
  local function gave(word, a, reply)
    if type(reply) == 'table' and reply.err then return false end
    local option, equal = {}, nil
    for i = 3, word == 'SET' and #a or 0 do
      local each = string.upper(tostring(a[i]))
      if each == 'IFEQ' then equal = a[i + 1] end
      option[each] = true
    end
    if not option.GET then return reply and reply ~= 0 end
    if equal then return reply == tostring(equal) end
    if option.NX then return not reply end
    return reply or not option.XX
  end
  -- SPOP chooses at random; here it takes the least members.
  local function pop(ask, key, count)
    local found, taken = ask('SMEMBERS', key), {}
    if found.err then return found end
    if found.set then
      local names = {}
      for name in pairs(found.set) do names[#names + 1] = name end
      found = names
    end
    table.sort(found)
    for i = 1, math.min(count or 1, #found) do
      taken[i] = found[i]
      ask('SREM', key, found[i])
    end
    return count and taken or taken[1] or false
  end
  local function gate(ask)
    return function(name, ...)
      local word, a = string.upper(name), {...}
      if word == 'TIME' then return {seconds, micros} end
      local count = tonumber(a[2])
      if word == 'SPOP' and (#a == 1 or (#a == 2 and count and count >= 0 and count % 1 == 0)) then
        return pop(ask, a[1], count)
      end
      if LOOK[word] then
        local ms = ask('PTTL', a[1])
        if type(ms) ~= 'number' or ms < 0 then return ms end
        ms = remaining(a[1], ms) + (#word > 5 and clock or 0)
        return LOOK[word] == 1 and ms or math.floor((ms + 500) / 1000)
      end
      if word == 'XADD' then
        local i = 2
        while true do
          local option = string.upper(tostring(a[i]))
          if option == 'NOMKSTREAM' or option == 'KEEPREF' or option == 'DELREF' or option == 'ACKED' then i = i + 1
          elseif option == 'LIMIT' then i = i + 2
          elseif option == 'MAXLEN' or option == 'MINID' then
            i = i + ((a[i + 1] == '=' or a[i + 1] == '~') and 3 or 2)
          else break end
        end
        if a[i] == '*' then a[i] = string.format('%.0f', clock) .. '-*' end
        return ask(word, unpack(a))
      end
      if MOVES[word] then
        local reply, from, to = ask(name, ...), tostring(a[1]), tostring(a[2])
        if reply == 1 or (type(reply) == 'table' and reply.ok) then left[to], given[to] = left[from], given[from] end
        return reply
      end
      local ms
      if word == 'SETEX' or word == 'PSETEX' then
        ms = length(word == 'SETEX' and 'EX' or 'PX', a[2])
        if ms then word, a[2] = 'PSETEX', coded(ms) end
      elseif word == 'SET' or word == 'GETEX' then
        for i = word == 'SET' and 3 or 2, #a - 1 do
          local unit = string.upper(tostring(a[i]))
          if UNIT[unit] and not ms then
            ms = length(unit, a[i + 1])
            if ms then a[i], a[i + 1] = 'PX', coded(ms) end
          end
        end
      elseif EXPIRE[word] then
        ms = length(EXPIRE[word], a[2])
        local only = string.upper(tostring(a[3] or ''))
        if ms then
          if only == 'GT' or only == 'LT' then
            local now = ask('PTTL', a[1])
            now = type(now) == 'number' and now >= 0 and remaining(a[1], now) or 1 / 0
            if (only == 'GT' and ms <= now) or (only == 'LT' and ms >= now) then return 0 end
            a[3] = nil
          end
          word, a[2] = 'PEXPIRE', coded(ms)
        end
      end
      if not ms then return ask(name, ...) end
      local reply = ask(word, unpack(a))
      if gave(word, a, reply) then given[tostring(a[1])] = true end
      return reply
    end
  end
  return setmetatable({call = gate(real.call), pcall = gate(real.pcall)}, {__index = real})
end)(redis, 
