function test_redacts_only_if_the_model_says_so()
    expect(post_hook(context { message = "Call Ada", answers = { "YES", "Call [REDACTED]" } }).message, "Call [REDACTED]")
    expect(post_hook(context { message = "Hello", answers = { "NO" } }).message, "Hello")
end
