-- The functions of `string` that take patterns, around those in Rust. Those return `false`, a text and a level instead of raising an error:
-- raised here, it is a plain text with the place of the caller, as the language's own functions raise it. None of them returns `false`
-- as its first value otherwise.
local raw, error = ...
local raw_find, raw_match, raw_gsub = raw.find, raw.match, raw.gsub

-- Called by the function whose caller is to blame: level 3 from here.
local function pass(first, ...)
    if first == false then
        error(...)
    end
    return first, ...
end

local function find(...)
    return pass(raw_find(...))
end

local function match(...)
    return pass(raw_match(...))
end

local function gsub(...)
    return pass(raw_gsub(...))
end

return find, match, gsub
