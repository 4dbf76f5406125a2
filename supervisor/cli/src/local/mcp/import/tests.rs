use super::*;

#[test]
fn names_become_plugins_names_and_no_two_are_the_same() {
    let mut taken = BTreeSet::new();
    let mut named = |name: &str| {
        let plugin = plugin_name(name, &taken);
        taken.extend(plugin.clone());
        plugin
    };
    for (name, plugin) in [
        ("git", "git"),
        ("Git", "git-2"),
        ("My Server (beta)", "my-server-beta"),
        ("@scope/pkg", "scope-pkg"),
        ("a__b", "a-b"),
        ("talon", "talon-2"),
        ("-x-", "x"),
    ] {
        assert_eq!(named(name).as_deref(), Some(plugin), "{name}");
    }
    assert_eq!(named("日本"), None);
    assert_eq!(named(""), None);
    assert_eq!(named(&"long".repeat(50)).map(|name| name.len()), Some(48));
}

#[test]
fn every_editor_has_its_own_place_for_servers() {
    for root in [
        json!({ "mcpServers": { "a": {} } }),
        json!({ "servers": { "a": {} }, "inputs": [] }),
        json!({ "mcp": { "servers": { "a": {} } } }),
        json!({ "mcpServers": {}, "servers": { "a": {} } }),
    ] {
        assert!(servers(&root).is_some_and(|servers| servers.contains_key("a")), "{root}");
    }
    for none in [json!({}), json!([]), json!({ "mcpServers": [] }), json!({ "mcpServers": {} })] {
        assert!(servers(&none).is_none(), "{none}");
    }
}
