use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::{KeySource, ProviderKeys, ProviderKind, Secret};

fn none(_: &str) -> Option<String> {
    None
}

fn settings<const N: usize>(entries: [(&str, ProviderEntry); N]) -> Settings {
    let mut settings = Settings::default();
    settings.models.providers = ProviderKeys(entries.map(|(name, entry)| (name.to_owned(), entry)).into());
    settings
}

fn with_file(path: &Path) -> Settings {
    settings([(
        "a",
        ProviderEntry { api_key_file: Some(path.to_owned()), ..ProviderEntry::new(ProviderKind::Openai) },
    )])
}

/// A file of these permissions, and what comes of it as one with keys.
fn gathered(text: &[u8], mode: u32) -> (PathBuf, SettingsBundle, Vec<String>) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("keys");
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
    let (bundle, problems) = SettingsBundle::collect(&with_file(&path), &none, &read_file);
    (path, bundle, problems)
}

// Promises: CONF-19
#[test]
fn what_is_named_is_handed_over_and_nothing_else() {
    let entry = ProviderEntry {
        api_key_env: Some("FIRST".to_owned()),
        api_keys: vec![KeySource::Env("SECOND".to_owned()), KeySource::File("/keys".into())],
        ca_file: Some("/ca".into()),
        ..ProviderEntry::new(ProviderKind::Openai)
    };
    let scripted =
        ProviderEntry { file: Some("/answers".into()), ..ProviderEntry::new(ProviderKind::Scripted) };
    let env = |name: &str| (name != "ALL_PROXY").then(|| format!("value-of-{name}"));
    let read =
        |path: &Path| Ok(NamedFile { bytes: format!("in-{}", path.display()).into_bytes(), mode: 0o640 });
    let (bundle, problems) =
        SettingsBundle::collect(&settings([("a", entry), ("scripted", scripted)]), &env, &read);
    assert_eq!(problems, Vec::<String>::new());
    let names: Vec<&str> = bundle.environment.keys().map(String::as_str).collect();
    let expected = [
        "FIRST",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "NO_PROXY",
        "SECOND",
        "all_proxy",
        "http_proxy",
        "https_proxy",
        "no_proxy",
    ];
    assert_eq!(names, expected);
    let files: Vec<_> = bundle.files.keys().map(|path| path.to_string_lossy().into_owned()).collect();
    assert_eq!(files, ["/answers", "/ca", "/keys"]);
    assert_eq!(bundle.file(Path::new("/keys")).expect("handed over"), b"in-/keys");
    assert_eq!(bundle.variable("FIRST").as_deref(), Some("value-of-FIRST"));
    assert_eq!(bundle.variable("HOME"), None);
    let shown = format!("{bundle:?}");
    assert!(!shown.contains("value-of") && !shown.contains("in-/"), "{shown}");
}

#[test]
fn a_file_holds_a_key_on_each_line() {
    let (path, bundle, problems) = gathered(b"# ours\nsk-one\n\n  sk-two\r\n", 0o640);
    assert_eq!(problems, Vec::<String>::new());
    let found = find_keys(&KeySource::File(path.clone()), &bundle).expect("keys");
    let keys: Vec<_> = found.iter().map(|found| found.key.reveal()).collect();
    assert_eq!(keys, ["sk-one", "sk-two"]);
    assert_eq!(found[1].place, format!("{}, line 4", path.display()));
    assert!(!format!("{found:?}").contains("sk-"), "{found:?}");
}

// Promises: CONF-19
#[test]
fn a_file_that_others_can_read_is_not_handed_over() {
    for mode in [0o644, 0o604, 0o602, 0o601] {
        let (path, bundle, problems) = gathered(b"sk-one", mode);
        assert_eq!(problems.len(), 1, "{mode:o}: {problems:?}");
        assert!(problems[0].contains("chmod o="), "{problems:?}");
        assert!(bundle.files.is_empty(), "{mode:o}");
        let error = find_keys(&KeySource::File(path), &bundle).expect_err("readable by others");
        assert!(matches!(error, KeyError::File(_)) && error.to_string().contains("chmod o="), "{error}");
    }
}

#[test]
fn keys_are_checked_wherever_else_their_file_is_named() {
    let keys = ProviderEntry { api_key_file: Some("/f".into()), ..ProviderEntry::new(ProviderKind::Openai) };
    let other = ProviderEntry { ca_file: Some("/f".into()), ..ProviderEntry::new(ProviderKind::Openai) };
    let open = |_: &Path| Ok(NamedFile { bytes: b"sk-one".to_vec(), mode: 0o644 });
    for (first, second) in [(&keys, &other), (&other, &keys)] {
        let settings = settings([("a", first.clone()), ("b", second.clone())]);
        let (bundle, problems) = SettingsBundle::collect(&settings, &none, &open);
        assert!(bundle.files.is_empty(), "{bundle:?}");
        assert!(problems.iter().any(|problem| problem.contains("chmod o=")), "{problems:?}");
    }
}

// Promises: CONF-19
#[test]
fn what_is_no_key_is_named_by_its_place_alone() {
    let (path, bundle, problems) = gathered(b"sk one\n", 0o600);
    assert!(problems[0].starts_with("provider a: what "), "{problems:?}");
    let error = find_keys(&KeySource::File(path), &bundle).expect_err("a space").to_string();
    assert!(error.contains("line 1") && !error.contains("sk one"), "{error}");
    let keys =
        ProviderEntry { api_key_env: Some("K".to_owned()), ..ProviderEntry::new(ProviderKind::Openai) };
    let schluessel = |name: &str| (name == "K").then(|| "schlüssel".to_owned());
    let (_, problems) = SettingsBundle::collect(&settings([("a", keys.clone())]), &schluessel, &read_file);
    assert_eq!(problems.len(), 1);
    assert!(!problems[0].contains("schl"), "{problems:?}");
    let (bundle, problems) = SettingsBundle::collect(&settings([("a", keys)]), &none, &read_file);
    assert!(problems[0].contains("set it for the supervisor"), "{problems:?}");
    assert!(matches!(find_keys(&KeySource::Env("K".to_owned()), &bundle), Err(KeyError::NotSet(_))));
    for (text, said) in [(&b"\n# none\n"[..], "holds no key"), (b"\xff\xfe", "holds no text")] {
        let (_, _, problems) = gathered(text, 0o600);
        assert!(problems[0].contains(said), "{problems:?}");
    }
}

#[test]
fn a_file_that_cannot_be_one_with_keys_is_refused() {
    let (_, bundle, problems) = gathered(&vec![b'x'; 70_000], 0o600);
    assert!(problems[0].contains("is larger than 65536 bytes"), "{problems:?}");
    assert!(bundle.files.is_empty());
    let dir = tempfile::tempdir().expect("a directory");
    for path in [dir.path().to_owned(), dir.path().join("missing")] {
        let (bundle, problems) = SettingsBundle::collect(&with_file(&path), &none, &read_file);
        assert!(problems[0].contains("cannot be read"), "{problems:?}");
        assert!(problems[0].contains("the user that the supervisor runs as"), "{problems:?}");
        assert!(bundle.file(&path).is_err());
    }
}

// Promises: CONF-19
#[test]
fn there_is_an_end_to_what_is_handed_over() {
    let many = |index: usize| KeySource::File(format!("/keys/{index}").into());
    let api_keys: Vec<_> = (0..MAX_FILES + 5).map(many).collect();
    let files = settings([("a", ProviderEntry { api_keys, ..ProviderEntry::new(ProviderKind::Openai) })]);
    let small = |_: &Path| Ok(NamedFile { bytes: b"sk-one".to_vec(), mode: 0o600 });
    let (bundle, problems) = SettingsBundle::collect(&files, &none, &small);
    assert_eq!((bundle.files.len(), problems.len()), (MAX_FILES, 5));

    let entries = (0..20).map(|index| {
        let entry = ProviderEntry {
            ca_file: Some(format!("/ca/{index}").into()),
            ..ProviderEntry::new(ProviderKind::Openai)
        };
        (format!("p{index}"), entry)
    });
    let mut bundles = Settings::default();
    bundles.models.providers = ProviderKeys(entries.collect());
    let large = |_: &Path| Ok(NamedFile { bytes: vec![b'x'; 1 << 20], mode: 0o644 });
    let (bundle, problems) = SettingsBundle::collect(&bundles, &none, &large);
    assert_eq!((bundle.files.len(), problems.len()), (8, 12));
    let bytes = bundle.to_bytes().expect("what can be gathered can be handed over");
    assert_eq!(SettingsBundle::from_bytes(&bytes).expect("the same"), bundle);

    let long = |_: &str| Some("x".repeat(MAX_VARIABLE_BYTES + 1));
    let (bundle, problems) = SettingsBundle::collect(&Settings::default(), &long, &read_file);
    assert_eq!((bundle.environment.len(), problems.len()), (0, PROXY_VARIABLES.len()));
    assert!(matches!(
        SettingsBundle::from_bytes(&vec![b' '; MAX_BUNDLE_BYTES + 1]),
        Err(BundleError::TooLong(_))
    ));
}

// Promises: CONF-19
#[test]
fn bytes_hold_every_secret_and_nothing_else_does() {
    let entry = ProviderEntry {
        api_key_env: Some("KEY".to_owned()),
        headers: [("x-a/~\"b".to_owned(), Secret::new("hunter2-header"))].into(),
        proxy: Some(Secret::new("http://user:hunter2-proxy@p")),
        ..ProviderEntry::new(ProviderKind::Openai)
    };
    let env = |name: &str| (name == "KEY").then(|| "hunter2-key".to_owned());
    let settings = settings([("a", entry)]);
    let (bundle, problems) = SettingsBundle::collect(&settings, &env, &read_file);
    assert_eq!(problems, Vec::<String>::new());
    let bytes = bundle.to_bytes().expect("small");
    let text = String::from_utf8(bytes.clone()).expect("JSON");
    for secret in ["hunter2-header", "hunter2-proxy", "hunter2-key"] {
        assert!(text.contains(secret), "{secret}");
    }
    assert!(!text.contains(crate::HIDDEN), "{text}");
    assert_eq!(SettingsBundle::from_bytes(&bytes).expect("the same"), bundle);
    let shown = format!("{bundle:?} {}", serde_json::to_string(&bundle.settings).expect("JSON"));
    assert!(!shown.contains("hunter2"), "{shown}");
}

/// A secret that is added to the settings has to be revealed in the bytes as well, or the agent gets
/// `[hidden]` instead.
#[test]
fn there_are_no_secrets_but_those_that_are_revealed() {
    fn walk(schema: &serde_json::Value, path: &str, found: &mut Vec<String>) {
        match schema {
            serde_json::Value::Object(map) => {
                if map.contains_key("x-secret") {
                    found.push(path.to_owned());
                }
                map.iter().for_each(|(key, value)| walk(value, &format!("{path}/{key}"), found));
            }
            serde_json::Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, item)| walk(item, &format!("{path}/{index}"), found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for schema in [
        schemars::schema_for!(crate::AgentKeys),
        schemars::schema_for!(crate::ModelKeys),
        schemars::schema_for!(crate::OrchestratorKeys),
    ] {
        walk(schema.as_value(), "", &mut found);
    }
    assert_eq!(found.len(), 2, "headers and proxy, and: {found:?}");
}

#[test]
fn bytes_that_are_no_such_thing_are_refused_without_being_repeated() {
    for text in [
        "",
        "{}",
        "hunter2",
        r#"{"settings":{},"environment":{"hunter2":1},"files":{},"refused":{}}"#,
        r#"{"settings":{"hunter2":1},"environment":{},"files":{},"refused":{}}"#,
        r#"{"settings":{},"environment":{},"files":{"/hunter2":"!"},"refused":{}}"#,
    ] {
        let error = SettingsBundle::from_bytes(text.as_bytes()).expect_err("refused");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}: {error}");
    }
}
