function test_explains_what_is_there()
    local ctx = pre_hook(context { message = "Why is TPS low on line 7?" })
    expect(ctx.message, "Why is TPS low on line 7?\n\n(Terms: TPS: throughput per shift, in pallets; "
        .. "line 7: the packing line in hall C)")
end

function test_leaves_other_messages_as_they_are()
    expect(pre_hook(context { message = "Hello" }).message, "Hello")
end
