-- on_call.lua: keeps what happened for whoever is on call, and says at nine what it was
schedule = { cron = "0 9 * * *" }

local most = 20

function on_event(ctx)
    if ctx.event.severity == "info" then
        return
    end
    local count = (ctx.kv_get("count") or 0) + 1
    ctx.kv_set("count", count)
    if count <= most then
        ctx.kv_set("event/" .. count, ctx.event.severity .. ": " .. ctx.message:sub(1, 500))
    end
    ctx.log("warn", ctx.event.kind .. " is kept for the morning")
end

function task(ctx)
    local count = ctx.kv_get("count") or 0
    if count == 0 then
        return "Nothing happened."
    end
    local lines = { count .. " events since yesterday:" }
    for index = 1, math.min(count, most) do
        table.insert(lines, "- " .. (ctx.kv_get("event/" .. index) or "?"))
        ctx.kv_delete("event/" .. index)
    end
    ctx.kv_delete("count")
    return table.concat(lines, "\n")
end
