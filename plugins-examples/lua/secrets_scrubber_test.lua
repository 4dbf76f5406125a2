function test_scrubs_tokens_and_keys()
    local key = "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----"
    local ctx = post_hook(context { message = "use ghp_abc123 or sk-live-9 or\n" .. key })
    expect(ctx.message, "use [secret] or [secret] or\n[secret]")
    expect(ctx.logs[1].level, "warn")
end

function test_leaves_prose()
    expect(post_hook(context { message = "ask risk-averse people" }).message, "ask risk-averse people")
end
