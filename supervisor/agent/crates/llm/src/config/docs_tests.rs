//! The examples of `docs/providers.md` are configurations and scripts that work.

use super::tests::providers;
use super::*;
use crate::scripted::Script;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../docs/providers.md");

/// The blocks of a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).filter_map(|rest| Some(rest.split_once("\n```")?.0.to_owned())).collect()
}

fn page() -> String {
    std::fs::read_to_string(PAGE).expect("docs/providers.md")
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    models: Models,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Models {
    providers: Config,
}

#[test]
fn every_example_is_read_and_makes_its_providers() {
    let blocks: Vec<_> =
        blocks(&page(), "yaml").into_iter().filter(|block| block.starts_with("models:")).collect();
    assert!(blocks.len() >= 9, "{}", blocks.len());
    for block in blocks {
        let File { models: Models { providers: config } } =
            serde_saphyr::from_str(&block).unwrap_or_else(|error| panic!("{block}\n{error}"));
        let wanted = config.0.len();
        // Files are those of a reader's machine.
        let config = Config(
            config
                .0
                .into_iter()
                .map(|(name, entry)| {
                    let api_keys =
                        entry.api_keys.into_iter().filter(|key| matches!(key, crate::KeySource::Env(_)));
                    let api_keys = api_keys.collect();
                    (name, ProviderEntry { api_key_file: None, ca_file: None, file: None, api_keys, ..entry })
                })
                .collect(),
        );
        let made = providers(&config, &|name| name.ends_with("_KEY").then(|| "sk-example".to_owned()));
        assert!(made.problems.is_empty(), "{block}\n{:?}", made.problems);
        assert_eq!(made.ready.len(), wanted, "{block}");
    }
}

#[test]
fn every_script_can_be_played() {
    let blocks: Vec<_> =
        blocks(&page(), "yaml").into_iter().filter(|block| block.starts_with("answers:")).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let script: Script =
            serde_saphyr::from_str(&block).unwrap_or_else(|error| panic!("{block}\n{error}"));
        crate::scripted::Scripted::new("scripted", "the page", script, Timeouts::default())
            .unwrap_or_else(|error| panic!("{block}\n{error}"));
    }
}

#[test]
fn the_page_names_every_key_class_and_default() {
    let page = page();
    let entry = schemars::schema_for!(ProviderEntry);
    let keys = entry.pointer("/properties").and_then(|keys| keys.as_object()).expect("an object");
    for key in keys.keys() {
        assert!(page.contains(&format!("`{key}`")), "{key} is missing");
    }
    for class in ["auth", "rate_limit", "billing", "context", "timeout", "network", "server", "request"] {
        assert!(page.contains(&format!("| `{class}` |")), "{class} is missing");
    }
    let timeouts = Timeouts::default();
    for (key, span) in [
        ("connect", timeouts.connect),
        ("first_token", timeouts.first_token),
        ("between", timeouts.between),
        ("total", timeouts.total),
    ] {
        assert!(page.contains(&format!("| `{key}` | {span} |")), "{key} {span}");
    }
}
