-- Gives the lock to the first living waiter, or frees it.
-- KEYS     see fair_lock_queue.lua
-- ARGV[1]  the token
-- reply    1: done · 0 or less: it is another's, or gone; minus the last fencing number that was given
if redis.call('GET', KEYS[1]) == ARGV[1] then
    hand_over()
    return 1
end
return -tonumber(redis.call('GET', KEYS[2]) or 0)
