function test_words_are_replaced()
    expect(post_hook(context { message = "a bug, asap" }).message, "a defect, with high priority")
end
