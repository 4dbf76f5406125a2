-- {{name}}.lua: notes that a message is urgent, before a model has it. Functions and ctx: docs/lua.md.
function pre_hook(ctx)
    if string.find(string.lower(ctx.message), "urgent", 1, true) then
        ctx.metadata.priority = "high"
    end
end
