function test_translates_what_is_not_english()
    local ctx = pre_hook(context { message = "Guten Morgen", answers = { "de", "Good morning" } })
    expect(ctx.message, "Good morning")
    expect(ctx.metadata.original_language, "de")
    expect(#ctx.prompts, 2)
end

function test_asks_once_about_english()
    local ctx = pre_hook(context { message = "Good day", answers = { "en" } })
    expect(ctx.message, "Good day")
    expect(#ctx.prompts, 1)
end
