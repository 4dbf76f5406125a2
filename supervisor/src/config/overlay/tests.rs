use proptest::prelude::*;
use serde_json::{Map, Value, json};
use talon_plugin_config::document::origin::KeyPath;

use super::keys::KeyPlace;
use super::*;
use crate::config::tests::Scene;
use crate::config::values::ConfigLayer;
use crate::config::{LoadOptions, load, schema};

fn key(path: &str) -> KeyPath {
    KeyPath::of(&path.split('.').collect::<Vec<_>>())
}

fn with(text: &str, options: &LoadOptions) -> LoadOptions {
    LoadOptions { overlay: OverlayUse::Candidate(text.into()), ..options.clone() }
}

// Promises: GW-125
#[test]
fn it_stands_above_the_file_and_below_environment_and_flags() {
    let scene = Scene::file("agent: { turn: { iterations: 11 } }\nlog: { level: warn }\n")
        .var("TALON_LOG__LEVEL", "error");
    let text = "agent: { turn: { iterations: 22 } }\nlog: { level: debug }\n";
    let loaded = load(&with(text, &scene.options)).unwrap();
    let row = |path: &str| loaded.rows().into_iter().find(|row| row.key == key(path)).unwrap();
    let iterations = row("agent.turn.iterations");
    assert_eq!((iterations.value, iterations.layer), (json!(22), ConfigLayer::Overlay));
    assert!(iterations.source.contains("overlay.yaml:1:"), "{}", iterations.source);
    assert_eq!(iterations.fixed, None);
    let level = row("log.level");
    assert_eq!((level.value, level.layer), (json!("error"), ConfigLayer::Environment));
    assert!(level.fixed.unwrap().contains("TALON_LOG__LEVEL"));
    assert!(row("runtime_dir").fixed.is_some());
    let ignored = LoadOptions { overlay: OverlayUse::Ignore, ..scene.options.clone() };
    let ignored = load(&ignored).unwrap();
    assert!(ignored.overlay.is_none() && ignored.rows().iter().all(|row| row.fixed.is_some()));
}

// Promises: GW-125
#[test]
fn nothing_in_it_is_substituted() {
    let scene = Scene::empty().var("HOME_SECRET", "outside");
    let loaded = load(&with("orchestrator: { rules: [\"say ${HOME_SECRET}\"] }", &scene.options)).unwrap();
    let shown = loaded.show_json().to_string();
    assert!(shown.contains("${HOME_SECRET}") && !shown.contains("outside"), "{shown}");
}

// Promises: GW-126
#[test]
fn what_it_may_not_hold_does_not_count_and_is_told() {
    let scene = Scene::empty();
    let text = "agent: { turn: { iterations: 22 }, program: /bin/evil }\nsandbox: { mode: off }\n\
                plugins: { tools: { plugins: { x: { command: /bin/evil } } } }\n";
    let loaded = load(&with(text, &scene.options)).unwrap();
    assert_eq!(loaded.config.agent.program, None);
    assert!(loaded.config.plugins.tools.plugins.is_empty());
    let told: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    for named in ["agent.program", "sandbox.mode", "plugins.tools.plugins.x.command"] {
        assert!(told.iter().any(|warning| warning.contains(named)), "{named}: {told:?}");
    }
    assert_eq!(
        loaded.rows().iter().find(|row| row.key == key("agent.turn.iterations")).unwrap().value,
        json!(22)
    );
}

// Promises: GW-126
#[test]
fn which_keys_it_may_hold_is_a_list_that_the_operator_widens_or_empties() {
    let of = |keys: &[&str]| OverlayKeys::new(&keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
    let value = json!("10s");
    assert!(of(&["guard"]).refusal(&key("guard.timeout"), &value).is_none());
    assert!(of(&DEFAULT_KEYS).refusal(&key("guard.timeout"), &value).unwrap().contains("or add it there"));
    assert!(of(&[]).refusal(&key("log.level"), &value).unwrap().contains("config_keys is empty"));
    let everything = of(&["agent", "plugins", "models", "gateway", "host"]);
    for never in [
        "gateway.max_role",
        "host.peers",
        "models.providers.x.url",
        "plugins.tools.overrides.x.env",
        "agent.workspace",
    ] {
        assert!(everything.refusal(&key(never), &value).is_some(), "{never}");
    }
    assert!(
        everything
            .refusal(&key("plugins.tools"), &json!({"plugins": {"x": {"command": "/bin/sh"}}}))
            .is_some()
    );
    assert!(is_ever_allowed("guard.timeout").is_ok() && is_ever_allowed("shadow").is_ok());
    for wrong in ["gateway", "models.providers", "agent.allow", "no_such_key", ""] {
        assert!(is_ever_allowed(wrong).is_err(), "{wrong}");
    }
}

// Promises: GW-126
#[test]
fn the_agents_rights_are_not_opened_with_the_agent() {
    let keys = OverlayKeys::new(&DEFAULT_KEYS.map(str::to_owned));
    for (rights, value) in [
        ("confirm", json!({"default": "never"})),
        ("allow", json!({"senders": {"mallory": ["files.*"]}})),
        ("groups", json!({"gw:telegram/group:-1": {"approvers": ["gw:telegram/2"]}})),
        ("identities", json!({"alice": ["gw:telegram/2"]})),
        ("trusted_plugins", json!(["files"])),
    ] {
        let why = "since it decides who may do what";
        let at_key = keys.refusal(&key("agent").key(rights), &value).unwrap();
        assert!(at_key.contains(why), "{rights}: {at_key}");
        let nested = keys.refusal(&key("agent"), &json!({ rights: value })).unwrap();
        assert!(nested.contains(why) && nested.contains(rights), "{nested}");
    }
    assert!(keys.refusal(&key("agent.confirm.default"), &json!("never")).is_some());
    assert_eq!(keys.refusal(&key("agent"), &json!({"turn": {"iterations": 7}})), None);
}

// Promises: GW-126
#[test]
fn a_key_that_may_hold_secrets_is_known_wherever_a_key_path_ends() {
    let may_hold = |path: &str| KeyPlace::find(schema::shared(), &key(path)).may_hold_secrets;
    for path in ["env", "env.TZ", "config", "config.a.b.c"] {
        assert!(may_hold(&format!("plugins.tools.overrides.x.{path}")), "{path}");
    }
    assert!(!may_hold("agent.turn.iterations") && !may_hold("plugins.tools.overrides.x"));
}

// Promises: GW-126
#[test]
fn a_wrong_overlay_is_refused_and_says_how_to_start_without_it() {
    let scene = Scene::empty();
    for wrong in ["agent: { turn: { iterations: many } }", "agent: [", "agent: { no_such_key: 1 }"] {
        let dir = &scene.options.environment.cwd;
        std::fs::write(dir.join("overlay.yaml"), wrong).unwrap();
        let options = scene.options.clone().with("--data-dir", "state.data_dir", dir.display().to_string());
        let errors = load(&options).unwrap_err().to_string();
        assert!(errors.contains("overlay.yaml") && errors.contains("--no-overlay"), "{errors}");
    }
}

#[test]
fn a_key_that_is_removed_takes_empty_maps_with_it() {
    let mut document = OverlayDocument::default();
    document.apply(&Edit { key: key("a.b.c"), value: Some(json!(1)) });
    document.apply(&Edit { key: key("a.d"), value: Some(json!([1, "x"])) });
    assert_eq!(document.get(&key("a.b.c")), Some(&json!(1)));
    document.apply(&Edit { key: key("a.b.c"), value: None });
    assert_eq!(Value::Object(document.values.clone()), json!({"a": {"d": [1, "x"]}}));
    document.apply(&Edit { key: key("a"), value: None });
    document.apply(&Edit { key: key("never.there"), value: None });
    assert!(document.values.is_empty());
}

// Promises: GW-129
#[test]
fn the_file_is_replaced_as_a_whole_and_its_history_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let file = OverlayFile::at(path_in(dir.path()));
    assert_eq!(file.read().unwrap(), "");
    file.write("a: 1").unwrap();
    file.write("a: 2").unwrap();
    assert_eq!(file.read().unwrap(), "a: 2");
    let history = History::beside(file.path());
    assert!(history.read().is_empty());
    for number in 1..=103 {
        let change = KeyChange { key: vec!["a".to_owned()], before: None, after: None };
        assert_eq!(history.add("uid:0".to_owned(), vec![change]).unwrap(), number);
    }
    let changes = history.read();
    assert_eq!((changes.len(), changes[0].number, changes[99].number), (100, 103, 4));
    std::fs::write(dir.path().join("overlay.history"), "no history").unwrap();
    assert!(history.read().is_empty());
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1_000_000i32..1_000_000).prop_map(|number| Value::from(f64::from(number) / 64.0)),
        "\\PC{0,12}|[\\x00-\\u{a0}\\u{2028}\\u{feff}]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("\\PC{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

proptest! {
    // Promises: GW-129
    #[test]
    fn what_is_written_reads_back_as_the_same(map in prop::collection::btree_map("\\PC{1,8}", values(), 0..4)) {
        let document = OverlayDocument { values: Map::from_iter(map) };
        let text = document.text();
        let read = OverlayDocument::parse(&text, Path::new("overlay.yaml"));
        prop_assert_eq!(read, Ok(document), "{}", text);
    }
}
