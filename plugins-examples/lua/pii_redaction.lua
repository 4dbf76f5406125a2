-- pii_redaction.lua: takes e-mail addresses, telephone numbers and card numbers out of messages and answers
local rules = {
    { kind = "email", pattern = "[%w%.%+%-_]+@[%w%-]+%.[%w%.%-]+" },
    { kind = "card",  pattern = "%f[%d]%d%d%d%d[ %-]?%d%d%d%d[ %-]?%d%d%d%d[ %-]?%d%d%d%d%f[%D]" },
    { kind = "phone", pattern = "%+%d[%d %-]+%d%d" },
}

function hook(ctx)
    local found = 0
    for _, rule in ipairs(rules) do
        local text, times = ctx.message:gsub(rule.pattern, "[" .. rule.kind .. "]")
        ctx.message = text
        found = found + times
    end
    if found > 0 then
        ctx.metadata["pii_redacted"] = found
        ctx.log("info", ctx.phase .. ": redacted " .. found)
    end
end
