-- A token bucket in whole tokens, as platform teams write it.
-- KEYS[1] the bucket; ARGV: burst, tokens each window, window in µs, cost.
-- Returns admitted (1 or 0), tokens left, and when denied the µs until there are enough.
-- The state is "tokens since", in one string: one write for each admission, where a hash
-- and its expiry would be two, in a transaction, for the replica. Time is the server's. A
-- bucket expires when it would be full, which is what an absent one is; a denial writes
-- nothing, so nothing of it is replicated.
local burst, amount, window, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local tokens, since = burst, now
local state = redis.call('GET', KEYS[1])
if state then
  local gap = string.find(state, ' ', 1, true)
  tokens, since = tonumber(string.sub(state, 1, gap - 1)), tonumber(string.sub(state, gap + 1))
  local fresh = math.floor((now - since) * amount / window)
  if tokens + fresh >= burst then
    tokens, since = burst, now
  elseif fresh > 0 then
    tokens, since = tokens + fresh, since + math.ceil(fresh * window / amount)
  end
end
if tokens < cost then
  return {0, tokens, math.ceil((cost - tokens) * window / amount) - (now - since)}
end
tokens = tokens - cost
local full = math.ceil((burst - tokens) * window / amount / 1000)
redis.call('SET', KEYS[1], string.format('%.0f %.0f', tokens, since), 'PX', full)
return {1, tokens, 0}
