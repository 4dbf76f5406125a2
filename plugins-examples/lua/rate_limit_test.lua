function test_counts_and_then_drops()
    local ctx = context { sender = "ada" }
    for _ = 1, 20 do
        expect(filter(ctx), nil)
    end
    expect(filter(ctx).drop, true)
end

function test_each_sender_has_a_count()
    local kv = { ["sender/ada"] = "20 " .. os.time() }
    expect(filter(context { sender = "ada", kv = kv }).drop, true)
    expect(filter(context { sender = "bob", kv = kv }), nil)
end

function test_an_old_count_is_forgotten()
    local ctx = context { sender = "ada", kv = { ["sender/ada"] = "20 " .. (os.time() - 61) } }
    expect(filter(ctx), nil)
end
