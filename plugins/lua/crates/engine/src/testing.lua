-- What a script's own tests have beside the script: expect, and a ctx without anything behind it.

local function same(a, b, depth)
    if a == b then
        return true
    end
    if type(a) ~= "table" or type(b) ~= "table" or depth > 50 then
        return false
    end
    for key, value in pairs(a) do
        if not same(value, b[key], depth + 1) then
            return false
        end
    end
    for key in pairs(b) do
        if a[key] == nil then
            return false
        end
    end
    return true
end

-- expect(actual, expected, what): fails unless both are the same, by value.
function expect(actual, expected, what)
    if not same(actual, expected, 0) then
        local about = what and (tostring(what) .. ": ") or ""
        error(about .. "expected " .. shown(expected, 0) .. ", got " .. shown(actual, 0), 2)
    end
end

-- context { message = "...", kv = { ... }, answers = { "what a model says", ... } }: a ctx that keeps what was done with it, in
-- ctx.logs, ctx.kv and ctx.prompts.
function context(fields)
    local ctx = {
        message = "", session_id = "test", sender = "test", channel = "test", phase = "pre",
        metadata = {}, logs = {}, kv = {}, answers = {}, prompts = {},
    }
    for key, value in pairs(fields or {}) do
        ctx[key] = value
    end
    function ctx.log(level, message)
        table.insert(ctx.logs, { level = level, message = message })
    end
    function ctx.kv_get(key)
        return ctx.kv[key]
    end
    function ctx.kv_set(key, value)
        ctx.kv[key] = value
    end
    function ctx.kv_delete(key)
        local existed = ctx.kv[key] ~= nil
        ctx.kv[key] = nil
        return existed
    end
    function ctx.llm(prompt, model)
        table.insert(ctx.prompts, { prompt = prompt, model = model })
        local answer = table.remove(ctx.answers, 1)
        if answer == nil then
            return nil, "the test has no answer left"
        end
        return answer
    end
    return ctx
end
