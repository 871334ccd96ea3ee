-- When leases end on the server. It only reads, so that no WATCH breaks.
-- ARGV: the keys, whether they exist or not.
-- Reply: the PEXPIRETIME of each, as strings ('-1': no lease, '-2': gone).
local times = {}
for i = 1, #ARGV do times[i] = tostring(redis.call('PEXPIRETIME', ARGV[i])) end
return times
