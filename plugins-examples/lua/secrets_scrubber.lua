-- secrets_scrubber.lua: takes what looks like a credential out of answers
local shapes = {
    "%f[%w]AKIA%u%u%u%u[%u%d]+",
    "%f[%w]gh[pousr]_%w+",
    "%f[%w]sk%-[%w%-_]+",
    "%-%-%-%-%-BEGIN [%u ]-PRIVATE KEY%-%-%-%-%-.-%-%-%-%-%-END [%u ]-PRIVATE KEY%-%-%-%-%-",
}

function post_hook(ctx)
    local scrubbed = 0
    for _, shape in ipairs(shapes) do
        local text, times = ctx.message:gsub(shape, "[secret]")
        ctx.message = text
        scrubbed = scrubbed + times
    end
    if scrubbed > 0 then
        ctx.log("warn", "scrubbed " .. scrubbed .. " from an answer")
        ctx.metadata["secrets_scrubbed"] = scrubbed
    end
    return ctx
end
