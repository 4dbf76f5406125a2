-- How the tests call functions of `string`: each error becomes a value.
named = {
    table = { a = "X", b = 1.5, ["1"] = false, aa = "%1", [""] = "e", [1] = "one", [2] = {}, [" "] = {} },
    upper = string.upper,
    coroutine = coroutine.create(function() end),
}
function named.nothing() end
function named.falsy() return false end
function named.number() return 0.1 end
function named.join(...)
    local text = select("#", ...) .. ":"
    for i = 1, select("#", ...) do
        text = text .. type((select(i, ...))) .. tostring((select(i, ...))) .. ","
    end
    return text, "ignored"
end
function named.nested(text) return (string.gsub(text, "%a", "%0%0")) end
function named.bad() return {} end
function named.raises(text) error("raised " .. text) end
function named.raises_above() error("raised", 2) end
function named.raises_table() error({}) end

local function call(how, name, ...)
    local subject = ...
    if how == "native" then
        return pcall(string[name], ...)
    elseif how == "method" and type(subject) == "string" then
        return pcall(function(...)
            return subject[name](...)
        end, ...)
    end
    return pcall(function(...)
        return string[name](...)
    end, ...)
end

return call
