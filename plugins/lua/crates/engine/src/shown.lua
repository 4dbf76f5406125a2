-- A value as text, bounded.
local function shown(value, depth)
    if type(value) == "string" then
        return string.format("%q", value)
    end
    if type(value) ~= "table" or depth > 3 then
        return tostring(value)
    end
    local parts = {}
    for key, part in pairs(value) do
        if #parts == 20 then
            table.insert(parts, "...")
            break
        end
        table.insert(parts, tostring(key) .. " = " .. shown(part, depth + 1))
    end
    table.sort(parts)
    return "{ " .. table.concat(parts, ", ") .. " }"
end
