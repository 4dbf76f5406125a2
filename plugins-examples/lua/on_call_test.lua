local function event(kv, severity, summary)
    on_event(context { kv = kv, message = summary, event = { severity = severity, kind = "plugin.failed" } })
end

function test_says_what_happened_once()
    local kv = {}
    event(kv, "critical", "mail failed")
    event(kv, "info", "a reload")
    event(kv, "warning", "disk is full")
    expect(task(context { kv = kv }), "2 events since yesterday:\n- critical: mail failed\n- warning: disk is full")
    expect(task(context { kv = kv }), "Nothing happened.")
    expect(kv, {})
end
