-- Give leases the time that they have left in virtual time. The keys come as arguments: they are whatever there is.
-- ARGV: key, milliseconds left, key, milliseconds left … (0 or less: the lease is over)
-- Reply: the PEXPIRETIME of each, as strings ('-2': gone).
local times = {}
for i = 1, #ARGV, 2 do
  redis.call('PEXPIRE', ARGV[i], ARGV[i + 1])
  times[#times + 1] = tostring(redis.call('PEXPIRETIME', ARGV[i]))
end
return times
