function test_rules_need_no_model()
    local ctx = pre_hook(context { message = "my password is x" })
    expect(ctx.message, "[blocked: contains credential]")
    expect(#ctx.prompts, 0)
end

function test_the_model_decides_the_rest()
    expect(pre_hook(context { message = "rm -rf", answers = { "HIGH" } }).metadata.security_review, "required")
    expect(pre_hook(context { message = "ls", answers = { "LOW" } }).metadata, {})
end
