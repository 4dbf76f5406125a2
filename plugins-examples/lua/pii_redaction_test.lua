function test_redacts_each_kind()
    local ctx = context { message = "ada@example.org, +49 30 1234567, 4111 1111 1111 1111" }
    hook(ctx)
    expect(ctx.message, "[email], [phone], [card]")
    expect(ctx.metadata.pii_redacted, 3)
end

function test_leaves_everything_else()
    local ctx = context { message = "room 4711, 12:30" }
    hook(ctx)
    expect(ctx.message, "room 4711, 12:30")
    expect(ctx.metadata, {})
end
