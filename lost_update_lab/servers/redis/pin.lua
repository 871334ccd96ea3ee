-- Set leases, or end them.
-- ARGV: key, milliseconds, key, milliseconds … (0 or less: the lease is over)
-- Reply: the PEXPIRETIME of each, as strings ('-2': gone).
local times = {}
for i = 1, #ARGV, 2 do
  redis.call('PEXPIRE', ARGV[i], ARGV[i + 1])
  times[#times + 1] = tostring(redis.call('PEXPIRETIME', ARGV[i]))
end
return times
