function test_drops_blocked_words()
    expect(filter(context { message = "this is spam" }), { drop = true, reason = "blocked word: spam" })
    expect(filter(context { message = "good morning" }).drop, false)
end
