use std::path::Path;

use serde_json::{Value, json};

use super::super::defaults::SpecDefaults;
use super::super::merge::{SettingSources, merge_settings};
use super::*;
use crate::entry::PluginEntry;

/// The result for a manifest if the operator sets `wide` for all plugins and `over` for this one.
fn settled(manifest: Value, over: Value, wide: Value) -> Result<SandboxSettings, String> {
    let settings = |said: Value| -> PluginSettings { serde_json::from_value(said).unwrap() };
    let mut defaults = SpecDefaults::default();
    let all = settings(wide);
    all.sandbox.apply(&mut defaults.sandbox);
    defaults.sandbox.limits = all.limits.with_defaults(defaults.sandbox.limits);
    defaults.overrides.insert("p".to_owned(), settings(over));
    let mut manifest = manifest;
    manifest["command"] = "/bin/true".into();
    let manifest: PluginEntry = serde_json::from_value(manifest).unwrap();
    let spec = defaults.spec(PluginName::new("p").unwrap(), "a test", "/bin/true");
    let said = SettingSources { manifest: Some(&manifest), entry: None };
    merge_settings(spec, said, &defaults).map(|spec| spec.sandbox).map_err(|error| error.to_string())
}

fn sandbox(said: Value) -> Value {
    json!({ "sandbox": said })
}

/// The request of a manifest that the operator has not allowed, and the result after applying the line from
/// the message.
fn allowed_as_told(said: Value, wide: Value) -> SandboxSettings {
    let error = settled(sandbox(said.clone()), json!({}), sandbox(wide.clone())).unwrap_err();
    let mut over = json!({});
    for wish in error.split("; ") {
        let line = wish.rsplit_once("plugins.tools.overrides.p.").unwrap().1;
        let (key, value) = line.split_once(": ").unwrap();
        let mut place = &mut over;
        for step in key.split('.') {
            place = &mut place[step];
        }
        *place = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    }
    settled(sandbox(said), over, sandbox(wide)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn each_wish_names_the_line_that_grants_it() {
    let none = || json!({});
    assert_eq!(allowed_as_told(json!({ "profile": "ports" }), none()).profile, "ports");
    assert_eq!(allowed_as_told(json!({ "network": "full" }), none()).network, NetworkAccess::Full);
    assert_eq!(allowed_as_told(json!({ "network": "loopback" }), none()).network, NetworkAccess::Loopback);
    let proxied = allowed_as_told(json!({ "network": "proxy", "allow": ["a.example:1"] }), none());
    assert_eq!((proxied.network, proxied.allow), (NetworkAccess::Proxy, vec!["a.example:1".to_owned()]));
    let files = allowed_as_told(
        json!({ "fs": { "read": ["/srv/a"], "execute": ["/opt/b"], "write": ["/srv/c"] } }),
        none(),
    );
    assert_eq!(files.fs.lists().map(|(_, list)| list.map_or(0, Vec::len)), [1, 1, 1]);
    assert!(allowed_as_told(json!({ "tmp_exec": true }), none()).tmp_exec);
    assert_eq!(allowed_as_told(json!({ "tmp_bytes": "1GiB" }), none()).tmp_bytes, 1 << 30);
    let ports = allowed_as_told(
        json!({ "network": "full", "ports": { "connect": [80], "bind": [81] } }),
        json!({ "ports": { "connect": [443], "bind": [] } }),
    );
    assert_eq!((ports.ports.connect, ports.ports.bind), (Some(vec![80]), Some(vec![81])));
}

#[test]
fn less_is_always_granted() {
    let wide = sandbox(json!({
        "network": "full", "ports": { "connect": [80, 443] }, "allow": ["a.example:1", "b.example:1"],
        "fs": { "read": ["/srv/a", "/srv/b"] }, "tmp_exec": true,
    }));
    for less in [
        json!({ "mode": "enforce" }),
        json!({ "network": "none" }),
        json!({ "network": "proxy", "allow": ["c.example:1"] }),
        json!({ "ports": { "connect": [443], "bind": [8080] } }),
        json!({ "fs": { "read": ["/srv/b"] } }),
        json!({ "fs": { "write": [] } }),
        json!({ "tmp_exec": false, "tmp_bytes": "1MiB" }),
        json!({ "profile": "strict" }),
    ] {
        let settled = settled(sandbox(less.clone()), json!({}), wide.clone());
        assert!(settled.is_ok(), "{less}: {settled:?}");
    }
}

#[test]
fn a_grant_of_one_thing_is_none_of_another() {
    for (manifest, over, wide) in [
        // The network is granted, but not the destinations.
        (json!({ "network": "proxy", "allow": ["x:1"] }), json!({ "network": "proxy" }), json!({})),
        // The operator restricts it to the proxy, with the list of all plugins.
        (
            json!({ "allow": ["x:1"] }),
            json!({ "network": "proxy" }),
            json!({ "network": "full", "allow": ["y:1"] }),
        ),
        // A path inside a granted directory may be a symlink.
        (json!({ "fs": { "read": ["/srv/a/b"] } }), json!({}), json!({ "fs": { "read": ["/srv/a"] } })),
        (json!({ "fs": { "write": ["/srv/a"] } }), json!({}), json!({ "fs": { "read": ["/srv/a"] } })),
        (json!({ "fs": { "execute": ["/srv/a"] } }), json!({}), json!({ "fs": { "write": ["/srv/a"] } })),
        (
            json!({ "ports": { "bind": [1] } }),
            json!({}),
            json!({ "network": "full", "ports": { "bind": [] } }),
        ),
    ] {
        let settled = settled(sandbox(manifest.clone()), sandbox(over), sandbox(wide));
        assert!(settled.is_err(), "{manifest}: {settled:?}");
    }
}

#[test]
fn the_operators_word_about_a_plugin_wins() {
    let greedy = || {
        sandbox(json!({
            "mode": "off", "profile": "/tmp/mine", "network": "full", "ports": { "connect": [22] },
            "allow": ["x:1"], "fs": { "read": ["/root"], "execute": ["/root"], "write": ["/root"] },
            "tmp_bytes": "9GiB", "tmp_exec": true,
        }))
    };
    let word = sandbox(json!({
        "mode": "enforce", "profile": "strict", "network": "none", "ports": { "connect": [] },
        "allow": [], "fs": { "read": [], "execute": [], "write": ["/srv"] }, "tmp_bytes": "1MiB", "tmp_exec": false,
    }));
    let held = settled(greedy(), word, json!({})).unwrap();
    assert_eq!((held.mode, held.network, &*held.profile), (Mode::Enforce, NetworkAccess::None, "strict"));
    assert_eq!((held.ports.connect, held.allow), (Some(Vec::new()), Vec::new()));
    assert_eq!(held.fs.read, Some(Vec::new()));
    assert_eq!(held.fs.write.unwrap(), [Path::new("/srv")]);
    assert_eq!((held.tmp_bytes, held.tmp_exec), (1 << 20, false));
    let error = settled(greedy(), json!({}), json!({})).unwrap_err();
    assert_eq!(error.split("; ").count(), 8, "{error}");
}

#[test]
fn every_limit_has_a_ceiling() {
    let asked = json!({
        "nofile": 2000, "nproc": 300, "fsize_bytes": "2GiB", "memlock_bytes": "1MiB", "data_bytes": "8GiB",
        "stack_bytes": "16MiB", "as_bytes": "2GiB", "cpu_seconds": 20, "memory_bytes": "2GiB",
        "cpu_percent": 200, "nice": 4,
    });
    let wide = json!({ "limits": { "as_bytes": "1GiB", "cpu_seconds": 10, "cpu_percent": 100 } });
    let manifest = || json!({ "limits": asked.clone() });
    let error = settled(manifest(), json!({}), wide.clone()).unwrap_err();
    let wishes: Vec<&str> = error.split("; ").collect();
    assert_eq!(wishes.len(), asked.as_object().unwrap().len(), "{error}");
    assert!(
        error.contains("limits.nice: plugin.yaml asks for 4, and the operator's word is 5"),
        "yielding less is asking for more: {error}"
    );
    let held = settled(manifest(), manifest(), wide.clone()).unwrap().limits;
    assert_eq!((held.stack_bytes, held.nice, held.cpu_percent), (16 << 20, 4, Some(200)));
    let modest = json!({ "limits": { "as_bytes": "1GiB", "cpu_seconds": 10, "cpu_percent": 1, "nice": 19,
        "memory_bytes": "1GiB", "stack_bytes": "8MiB" } });
    assert_eq!(settled(modest, json!({}), wide).unwrap().limits.nice, 19);
    let bounded = json!({ "limits": { "as_bytes": "64GiB", "cpu_seconds": 100_000, "cpu_percent": 1600 } });
    assert!(settled(bounded, json!({}), json!({})).is_ok(), "any bound is less than none");
}
