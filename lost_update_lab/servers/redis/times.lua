-- When leases end on the server: only read, so that nobody's WATCH breaks.
-- ARGV: the keys; they are whatever there is.
-- Reply: the PEXPIRETIME of each, as strings ('-1': no lease, '-2': gone).
local times = {}
for i = 1, #ARGV do times[i] = tostring(redis.call('PEXPIRETIME', ARGV[i])) end
return times
