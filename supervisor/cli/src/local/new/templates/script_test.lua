-- The tests of {{name}}.lua: talon lua test. A saved script takes its place only if they pass.
function test_urgent_messages_get_a_priority()
    local ctx = context { message = "This is URGENT." }
    pre_hook(ctx)
    expect(ctx.metadata.priority, "high")
end

function test_others_stay_as_they_are()
    local ctx = context { message = "Good morning" }
    pre_hook(ctx)
    expect(ctx.metadata, {})
end
