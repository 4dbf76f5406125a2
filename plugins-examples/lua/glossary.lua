-- glossary.lua: tells the model what the company's words mean, where a message has one of them
local terms = {
    ["TPS"]    = "throughput per shift, in pallets",
    ["line 7"] = "the packing line in hall C",
}

function pre_hook(ctx)
    local notes = {}
    for term, meaning in pairs(terms) do
        if ctx.message:find(term, 1, true) then
            table.insert(notes, term .. ": " .. meaning)
        end
    end
    if #notes > 0 then
        table.sort(notes)
        ctx.message = ctx.message .. "\n\n(Terms: " .. table.concat(notes, "; ") .. ")"
    end
    return ctx
end
