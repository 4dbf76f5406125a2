-- rate_limit.lua: at most 20 messages a minute from one sender
local limit, window = 20, 60

function filter(ctx)
    local key = "sender/" .. ctx.sender:sub(1, 200)
    local now = os.time()
    local count, since = 0, now
    local stored = ctx.kv_get(key)
    if stored then
        local n, at = stored:match("^(%d+) (%d+)$")
        if at and now - tonumber(at) < window then
            count, since = tonumber(n), tonumber(at)
        end
    end
    if count >= limit then
        return { drop = true, reason = "more than " .. limit .. " messages a minute: wait a little" }
    end
    ctx.kv_set(key, (count + 1) .. " " .. since)
end
