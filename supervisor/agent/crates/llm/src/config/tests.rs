use talon_agent_settings::{ModelKeys, Settings, read_file};

use super::{Config, Dialect, ProviderEntry, ProviderKind, Providers, SettingsBundle, TimeSpan};
use crate::key::{AsHeader as _, KeySource, Secret};

fn read(yaml: &str) -> Result<Config, String> {
    serde_saphyr::from_str(yaml).map_err(|error| error.to_string())
}

/// The providers of a configuration, on a machine with these variables.
pub(super) fn providers(config: &Config, env: &dyn Fn(&str) -> Option<String>) -> Providers {
    let models = ModelKeys { providers: config.clone(), ..ModelKeys::default() };
    let settings = Settings { models, ..Settings::default() };
    let (bundle, _) = SettingsBundle::collect(&settings, env, &read_file);
    super::providers(config, &bundle)
}

fn problems(yaml: &str) -> Vec<String> {
    let made = providers(&read(yaml).expect("a configuration"), &|_| None);
    assert!(made.ready.is_empty(), "{:?}", made.ready.keys());
    made.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn an_entry_is_read_with_its_defaults() {
    let config = read(
        "
        gpt:
          kind: openai
          api_key_env: OPENAI_API_KEY
          api_keys: [{ env: SECOND }, { file: /etc/talon/keys }]
          timeouts: { first_token: 5m }
          headers: { x-team: secret-team }
        ",
    )
    .expect("a configuration");
    let entry = &config.0["gpt"];
    assert_eq!(entry.kind, ProviderKind::Openai);
    assert_eq!(entry.timeouts.first_token, TimeSpan::from_secs(300));
    assert_eq!(entry.timeouts.total, TimeSpan::from_secs(600));
    assert_eq!(entry.api_keys[1], KeySource::File("/etc/talon/keys".into()));
    let shown = serde_json::to_string(&config).expect("shown");
    assert!(shown.contains("[hidden]") && !shown.contains("secret-team"), "{shown}");
    assert!(shown.contains("\"first_token\":\"5m\""), "{shown}");
}

#[test]
fn slips_are_refused() {
    for (yaml, said) in [
        ("a: { kind: openai, api_key: sk-1 }", "api_key"),
        ("a: { kind: openai, timeouts: { conect: 1s } }", "conect"),
        ("a: { kind: openai, timeouts: { connect: 10 } }", "10"),
        ("a: { kind: openai, timeouts: { connect: 0s } }", "more than none"),
        ("a: { kind: openai, timeouts: { connect: 30d } }", "at most 24h"),
        ("a: { kind: gopher }", "gopher"),
        ("a: { base_url: 'http://x' }", "kind"),
        ("a: { kind: openai, api_keys: [{ text: x }] }", "text"),
    ] {
        let error = read(yaml).expect_err("a slip");
        assert!(error.contains(said), "{yaml}: {error}");
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let found = problems(
        "
        a: { kind: openai, base_url: 'ftp://x', num_ctx: 4096, api_key_env: NOT_SET }
        b: { kind: scripted, base_url: 'http://x' }
        'c d': { kind: ollama, file: x, dialect: vllm }
        scripted: { kind: ollama }
        ",
    );
    for said in [
        "provider a: num_ctx is for kind: ollama",
        "provider a: the environment variable NOT_SET",
        "provider a: base_url has to start with",
        "provider b: no model answers here",
        "provider b: base_url says nothing to kind: scripted",
        "provider c d: its name",
        "provider c d: file is for kind: scripted",
        "provider c d: dialect is for kind: openai",
        "provider scripted: this name is kept",
    ] {
        assert!(found.iter().any(|problem| problem.starts_with(said)), "{said}: {found:#?}");
    }
}

#[test]
fn a_url_that_would_show_a_secret_or_lose_a_part_is_refused() {
    for url in ["http://user:hunter2@x", "http://x/?key=hunter2", "http://x/#hunter2", "x.example", "http://"]
    {
        let mut entry = ProviderEntry::new(ProviderKind::Openai);
        entry.base_url = Some(url.to_owned());
        let made = providers(&Config([("a".to_owned(), entry)].into()), &|_| None);
        assert_eq!(made.problems.len(), 1, "{url}");
        assert!(!made.problems[0].message.contains("hunter2"), "{:?}", made.problems);
    }
}

#[test]
fn one_bad_entry_does_not_take_the_others_along() {
    let config =
        read("a: { kind: ollama }\nb: { kind: openai, ca_file: /nonexistent }").expect("a configuration");
    let made = providers(&config, &|_| None);
    assert_eq!(made.ready.keys().collect::<Vec<_>>(), ["a"]);
    assert!(made.problems[0].message.contains("ca_file"), "{:?}", made.problems);
}

// Promises: AGENT-15
#[test]
fn a_secret_is_shown_nowhere() {
    let secret = Secret::new("hunter2");
    assert_eq!(format!("{secret:?}"), "[hidden]");
    assert_eq!(serde_json::to_string(&secret).expect("written"), "\"[hidden]\"");
    let header = secret.header("Bearer ").expect("a header");
    assert!(!format!("{header:?}").contains("hunter2"), "{header:?}");
}

#[test]
fn known_hosts_have_their_dialect() {
    let dialect = |url: &str| crate::openai::dialect_of(&url.parse().expect("a URL"));
    assert_eq!(dialect("https://api.openai.com/v1"), Dialect::Openai);
    assert_eq!(dialect("https://x.openai.azure.com/openai/v1"), Dialect::Openai);
    assert_eq!(dialect("https://api.deepseek.com"), Dialect::Deepseek);
    assert_eq!(dialect("https://openrouter.ai/api/v1"), Dialect::Openrouter);
    assert_eq!(dialect("https://notopenai.com/v1"), Dialect::Plain);
}
