-- Measures a script's pre_hook in a stock interpreter. Reads the lengths of the script and of the message, both texts, and then a line
-- for each turn.
local script_bytes = tonumber(io.read("*l"))
local message_bytes = tonumber(io.read("*l"))
local script = io.read(script_bytes)
local message = io.read(message_bytes)
assert((loadstring or load)(script))()

local function nothing() end

-- What talon-lua does for a call: a new ctx with its functions, and a look at what came back.
local function call()
    local metadata = {}
    local ctx = {
        message = message, session_id = "s1", sender = "ada", channel = "cli", phase = "pre", metadata = metadata,
        log = nothing, kv_get = nothing, kv_set = nothing, kv_delete = nothing, llm = nothing,
    }
    local returned = pre_hook(ctx)
    assert(returned.message == message and next(returned.metadata) == nil and not returned.drop)
end

local seconds, batch = 0.04, 64
while io.read("*l") do
    local begin, calls = os.clock(), 0
    repeat
        for _ = 1, batch do
            call()
        end
        calls = calls + batch
    until os.clock() - begin >= seconds
    io.write(string.format("%.6f\n", (os.clock() - begin) * 1e6 / calls))
    io.flush()
end
