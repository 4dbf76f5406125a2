use serde_json::json;
use talon_jail::Mode;

use super::*;
use crate::entry::{PluginSettings, SandboxMode};
use crate::name::PluginName;

fn settings(json: serde_json::Value) -> PluginSettings {
    serde_json::from_value(json).unwrap()
}

fn entry(json: serde_json::Value) -> PluginEntry {
    let mut json = json;
    json["command"] = "/bin/true".into();
    serde_json::from_value(json).unwrap()
}

/// The result for a manifest under these settings of the operator.
fn settled(
    manifest: serde_json::Value,
    own_entry: Option<serde_json::Value>,
    over: Option<serde_json::Value>,
    defaults: &SpecDefaults,
) -> Result<PluginSpec, String> {
    let mut defaults = defaults.clone();
    defaults.overrides.extend(over.map(|over| ("p".to_owned(), settings(over))));
    let (manifest, own_entry) = (entry(manifest), own_entry.map(entry));
    let said = SettingSources { manifest: Some(&manifest), entry: own_entry.as_ref() };
    let spec = defaults.spec(PluginName::new("p").unwrap(), "a test", "/bin/true");
    merge_settings(spec, said, &defaults).map_err(|error| error.to_string())
}

fn mode_of(word: &str) -> Mode {
    serde_json::from_value::<SandboxMode>(word.into()).unwrap().into()
}

// Promises: GUARD-69
#[test]
fn a_manifest_may_ask_to_be_watched_more_closely_and_never_less() {
    let kill = |after: &str| json!({ "kill_overdue_after": after });
    let seconds = |seconds: u64| Some(std::time::Duration::from_secs(seconds));
    let settled_at = |spec: Result<PluginSpec, String>| spec.unwrap().lifecycle.kill_overdue_after;
    let off = SpecDefaults::default();
    assert_eq!(settled_at(settled(json!({}), None, None, &off)), None);
    assert_eq!(settled_at(settled(kill("5s"), None, None, &off)), seconds(5));
    assert_eq!(settled_at(settled(kill("0s"), None, None, &off)), None);

    let lifecycle = crate::spec::LifecycleSettings { kill_overdue_after: seconds(5), ..Default::default() };
    let on = SpecDefaults { lifecycle, ..SpecDefaults::default() };
    assert_eq!(settled_at(settled(json!({}), None, None, &on)), seconds(5));
    assert_eq!(settled_at(settled(kill("1s"), None, None, &on)), seconds(1));
    for after in ["6s", "0s"] {
        let error = settled(kill(after), None, None, &on).unwrap_err();
        let told = format!(
            "kill_overdue_after: plugin.yaml asks for {after}, and the operator's word is 5s: remove it there, or allow it with plugins.tools.overrides.p.kill_overdue_after: {after}"
        );
        assert_eq!(error, told);
    }
    // The operator's setting for this plugin wins over the manifest.
    assert_eq!(settled_at(settled(kill("0s"), None, Some(kill("7s")), &on)), seconds(7));
    assert_eq!(settled_at(settled(kill("1s"), Some(kill("0s")), None, &on)), None);
}

#[test]
fn a_time_longer_than_a_day_to_ignore_a_deadline_is_refused() {
    let mut spec = SpecDefaults::default().spec(PluginName::new("p").unwrap(), "a test", "/bin/true");
    spec.lifecycle.kill_overdue_after = Some(crate::entry::MAX_CALL_TIMEOUT);
    crate::discover::check(&spec).unwrap();
    spec.lifecycle.kill_overdue_after = Some(2 * crate::entry::MAX_CALL_TIMEOUT);
    let error = crate::discover::check(&spec).unwrap_err().to_string();
    assert!(error.starts_with("kill_overdue_after: 2d is longer than a day"), "{error}");
}

// Promises: DISC-17
#[test]
fn a_manifest_does_not_loosen_its_jail() {
    let defaults = SpecDefaults::default();
    for mode in ["best-effort", "off"] {
        let manifest = || json!({ "sandbox": { "mode": mode } });
        let error = settled(manifest(), None, None, &defaults).unwrap_err();
        let allow = format!("plugins.tools.overrides.p.sandbox.mode: {mode}");
        assert!(error.starts_with("sandbox.mode: ") && error.ends_with(&allow), "{error}");
        for said_by_the_operator in ["enforce", "best-effort", "off"] {
            let word = || Some(json!({ "sandbox": { "mode": said_by_the_operator } }));
            let expected = mode_of(said_by_the_operator);
            let by_override = settled(manifest(), None, word(), &defaults).unwrap();
            assert_eq!(by_override.sandbox.mode, expected);
            let by_entry = settled(manifest(), word(), None, &defaults).unwrap();
            assert_eq!(by_entry.sandbox.mode, expected);
        }
    }
    let loose = SpecDefaults {
        sandbox: crate::spec::SandboxSettings { mode: Mode::BestEffort, ..Default::default() },
        ..SpecDefaults::default()
    };
    for (mode, fits) in [("enforce", true), ("best-effort", true), ("off", false)] {
        let settled = settled(json!({ "sandbox": { "mode": mode } }), None, None, &loose);
        assert_eq!(settled.is_ok(), fits, "{mode}");
    }
}

// Promises: DISC-17
#[test]
fn a_manifest_does_not_raise_its_limits() {
    let mut defaults = SpecDefaults::default();
    defaults.sandbox.limits.data_bytes = Some(1 << 30);
    let raised = json!({ "limits": {
        "nofile": 4096, "nproc": 257, "fsize_bytes": "2GiB", "memlock_bytes": "1MiB", "data_bytes": "2GiB" } });
    let error = settled(raised.clone(), None, None, &defaults).unwrap_err();
    let wishes: Vec<&str> = error.split("; ").collect();
    assert_eq!(wishes.len(), 5, "{error}");
    assert!(wishes[0].contains("asks for 4096, and the operator's word is 1024"), "{error}");
    assert!(wishes[2].ends_with("plugins.tools.overrides.p.limits.fsize_bytes: 2GiB"), "{error}");

    let one_allowed = Some(json!({ "limits": { "nofile": 2048 } }));
    let error = settled(raised.clone(), None, one_allowed, &defaults).unwrap_err();
    assert!(!error.contains("nofile") && error.contains("nproc"), "{error}");

    let own = settled(
        raised,
        Some(json!({ "limits": { "nofile": 9999, "nproc": 300, "fsize_bytes": "3GiB",
        "memlock_bytes": "2MiB", "data_bytes": "4GiB" } })),
        None,
        &defaults,
    );
    let limits = own.unwrap().sandbox.limits;
    assert_eq!((limits.nofile, limits.nproc, limits.data_bytes), (9999, 300, Some(4 << 30)));

    let lowered = json!({ "limits": { "nofile": 100, "nproc": 256, "data_bytes": "1GiB" } });
    let limits = settled(lowered, None, None, &defaults).unwrap().sandbox.limits;
    assert_eq!((limits.nofile, limits.nproc, limits.data_bytes), (100, 256, Some(1 << 30)));
}

// Promises: DISC-17
#[test]
fn a_manifest_does_not_raise_what_the_supervisor_holds_in_memory() {
    let raised = json!({ "max_message_bytes": "64MiB" });
    let error = settled(raised.clone(), None, None, &SpecDefaults::default()).unwrap_err();
    assert!(error.ends_with("plugins.tools.overrides.p.max_message_bytes: 64MiB"), "{error}");
    let allowed =
        settled(raised, None, Some(json!({ "max_message_bytes": "32MiB" })), &SpecDefaults::default());
    assert_eq!(allowed.unwrap().max_message_bytes, 32 << 20);
}

// Promises: DISC-17
#[test]
fn a_manifest_does_not_open_a_port() {
    let defaults = SpecDefaults::default();
    let manifest = || json!({ "allow_tcp": true });
    let error = settled(manifest(), None, None, &defaults).unwrap_err();
    assert!(error.ends_with("plugins.tools.overrides.p.allow_tcp: true"), "{error}");
    for said in [true, false] {
        let word = || Some(json!({ "allow_tcp": said }));
        assert_eq!(settled(manifest(), None, word(), &defaults).unwrap().allow_tcp, said);
        assert_eq!(settled(manifest(), word(), None, &defaults).unwrap().allow_tcp, said);
    }
    assert!(!settled(json!({ "allow_tcp": false }), None, None, &defaults).unwrap().allow_tcp);
}

// Promises: DISC-18
#[test]
fn the_later_word_wins() {
    let spec = settled(
        json!({ "args": ["m"], "dialect": "opentalon", "instances": 2, "timeout": "1s", "queue": 1,
            "env": { "A": "m", "B": "m", "C": "m" }, "config": { "x": "m", "y": "m" }, "max_restarts": 1,
            "actions": { "slow": { "timeout": "9m" } } }),
        Some(json!({ "args": ["e"], "instances": 3, "env": { "B": "e", "C": "e" }, "config": { "y": "e" } })),
        Some(json!({ "instances": 4, "env": { "C": "o" }, "max_restarts": 7, "max_message_bytes": "1MiB" })),
        &SpecDefaults::default(),
    )
    .unwrap();
    assert_eq!(spec.args, ["e"]);
    assert_eq!(spec.dialect, crate::spec::Dialect::OpenTalon);
    assert_eq!(spec.instances, 4);
    assert_eq!((&*spec.env["A"], &*spec.env["B"], &*spec.env["C"]), ("m", "e", "o"));
    assert_eq!(serde_json::Value::Object(spec.config), json!({ "x": "m", "y": "e" }));
    assert_eq!(spec.lifecycle.max_restarts, 7);
    assert_eq!(spec.max_message_bytes, 1 << 20);
    assert_eq!((spec.calls.queue, spec.calls.action_timeouts.len()), (Some(1), 1));
}

#[test]
fn an_operators_timeout_is_for_all_actions_that_he_does_not_name() {
    let manifest = || json!({ "actions": { "slow": { "timeout": "9m" } } });
    let word = json!({ "timeout": "5s", "actions": { "own": { "timeout": "7s" } } });
    for (own_entry, over) in [(Some(word.clone()), None), (None, Some(word))] {
        let spec = settled(manifest(), own_entry, over, &SpecDefaults::default()).unwrap();
        assert_eq!(spec.calls.timeout, Some(std::time::Duration::from_secs(5)));
        assert_eq!(spec.calls.action_timeouts.keys().collect::<Vec<_>>(), ["own"]);
    }
}

#[test]
fn a_url_is_a_way_to_its_host_alone_unless_its_entry_says_otherwise() {
    use crate::spec::NetworkAccess;

    let url = |more: serde_json::Value| {
        let mut json = json!({"url": "https://mcp.example.org/mcp"});
        json.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let entry: PluginEntry = serde_json::from_value(json).unwrap();
        // What every plugin may is not for this one.
        let mut defaults = SpecDefaults::default();
        defaults.sandbox.network = NetworkAccess::Full;
        defaults.sandbox.allow = vec!["everywhere.example:443".to_owned()];
        let spec = defaults.spec(PluginName::new("p").unwrap(), "a test", "/bin/true");
        let spec =
            merge_settings(spec, SettingSources { manifest: None, entry: Some(&entry) }, &defaults).unwrap();
        (spec.sandbox.network, spec.sandbox.allow)
    };
    let own = vec!["mcp.example.org:443".to_owned()];
    assert_eq!(url(json!({})), (NetworkAccess::Proxy, own.clone()));
    assert_eq!(url(json!({"sandbox": {"network": "full"}})).0, NetworkAccess::Full);
    let both = ["mcp.example.org:443", "10.0.0.5:443"];
    assert_eq!(
        url(json!({"sandbox": {"allow": both}})),
        (NetworkAccess::Proxy, both.map(String::from).to_vec())
    );
}
