-- The functions of `string` that take patterns, around those in Rust. Those return `false`, a text and a level instead of raising an error:
-- raised here, it is a plain text with the place of the caller, as the language's own functions raise it. None of them returns `false`
-- as its first value otherwise.
local raw, error = ...
local raw_find, raw_match, raw_gsub = raw.find, raw.match, raw.gsub
local raw_gmatch, raw_next_match = raw.gmatch, raw.next_match

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

local function gmatch(...)
    local subject, pattern = pass(raw_gmatch(...))
    local place = 0
    -- Keeps where the next match may begin, and passes on what the match holds.
    local function advance(following, ...)
        if following == false then
            error(...)
        elseif following then
            place = following
            return ...
        end
        return
    end
    return function()
        return advance(raw_next_match(subject, pattern, place))
    end
end

return find, match, gmatch, gsub
