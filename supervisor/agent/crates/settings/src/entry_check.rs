//! Checks of a provider's entry beyond its types.

use crate::{ProviderEntry, ProviderKind};

/// The longest name of a provider. It stands in every message and metric.
const MAX_NAME_BYTES: usize = 64;

/// A problem of an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}: {help}")]
pub struct EntryProblem {
    /// The key; `None` for the entry's name.
    pub key: Option<&'static str>,
    /// The problem. Contains no secret.
    pub message: String,
    /// What to do about it.
    pub help: &'static str,
}

impl ProviderEntry {
    /// All problems of the entry under this name. Keys without effect on its kind are mistakes; ignoring them
    /// would hide that.
    #[must_use]
    pub fn problems(&self, name: &str) -> Vec<EntryProblem> {
        let mut found = Vec::new();
        let mut wrong = |is_wrong: bool, key: Option<&'static str>, message: String, help: &'static str| {
            if is_wrong {
                found.push(EntryProblem { key, message, help });
            }
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(fits);
        let message = format!("its name has to be 1 to {MAX_NAME_BYTES} letters, digits, '-', '_' or '.'");
        wrong(!is_name, None, message, "call it otherwise");
        let scripted = self.kind == ProviderKind::Scripted;
        let says_so = name == "scripted" || name.starts_with("scripted-");
        let message = "no model answers here, so its name has to say so".to_owned();
        wrong(scripted && !says_so, None, message, "call it \"scripted\", or \"scripted-\" and more");
        let message = "this name is kept for kind: scripted".to_owned();
        wrong(!scripted && says_so, None, message, "call it otherwise");
        for (is_set, key, kind) in [
            (self.dialect.is_some() && self.kind != ProviderKind::Openai, "dialect", "openai"),
            (self.num_ctx.is_some() && self.kind != ProviderKind::Ollama, "num_ctx", "ollama"),
            (self.tool_search.is_some() && self.kind != ProviderKind::Anthropic, "tool_search", "anthropic"),
            (self.file.is_some() && !scripted, "file", "scripted"),
        ] {
            let message = format!("{key} is for kind: {kind} alone");
            wrong(is_set, Some(key), message, "remove it, or change the kind");
        }
        for (is_set, key) in [
            (self.base_url.is_some(), "base_url"),
            (self.api_key_env.is_some(), "api_key_env"),
            (self.api_key_file.is_some(), "api_key_file"),
            (!self.api_keys.is_empty(), "api_keys"),
            (!self.headers.is_empty(), "headers"),
            (self.proxy.is_some(), "proxy"),
            (self.ca_file.is_some(), "ca_file"),
        ] {
            let message = format!("{key} says nothing to kind: scripted, which asks nobody");
            wrong(scripted && is_set, Some(key), message, "remove it");
        }
        found
    }

    /// The problem of the base URL, as far as the text shows; clients parse it as a URL.
    #[must_use]
    pub fn base_url_problem(&self) -> Option<EntryProblem> {
        let url = self.base_url.as_deref()?;
        let problem =
            |message: &str, help| EntryProblem { key: Some("base_url"), message: message.to_owned(), help };
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let Some(rest) = rest.filter(|rest| !rest.is_empty() && !rest.starts_with('/')) else {
            return Some(problem(
                "base_url has to start with http:// or https:// and name a host",
                "write it like https://api.example.org/v1",
            ));
        };
        let (host, _) = rest.split_once(['/', '?', '#']).unwrap_or((rest, ""));
        if host.contains('@') {
            let message = "base_url holds a user or a password, which would be shown";
            return Some(problem(message, "put what it needs into headers"));
        }
        let message = "base_url ends before '?' and '#', since paths are added to it";
        rest.contains(['?', '#']).then(|| problem(message, "leave that part out"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_to_a_kind_is_named_by_its_key() {
        let entry = ProviderEntry {
            base_url: Some("http://x".to_owned()),
            api_key_env: Some("KEY".to_owned()),
            num_ctx: Some(1),
            ..ProviderEntry::new(ProviderKind::Scripted)
        };
        let keys: Vec<_> = entry.problems("mine").into_iter().map(|problem| problem.key).collect();
        assert_eq!(keys, [None, Some("num_ctx"), Some("base_url"), Some("api_key_env")]);
        assert!(ProviderEntry::new(ProviderKind::Ollama).problems("my-ollama_2.x").is_empty());
        for name in ["", "a b", "scripted-x", &"x".repeat(65)] {
            assert_eq!(ProviderEntry::new(ProviderKind::Ollama).problems(name).len(), 1, "{name:?}");
        }
    }

    #[test]
    fn a_url_that_is_none_or_shows_a_secret_is_known_by_its_text() {
        let with = |url: &str| ProviderEntry {
            base_url: Some(url.to_owned()),
            ..ProviderEntry::new(ProviderKind::Openai)
        };
        for good in ["http://x", "https://x.example:8080/v1/", "http://[::1]:11434"] {
            assert_eq!(with(good).base_url_problem(), None, "{good}");
        }
        for bad in [
            "",
            "x",
            "ftp://x",
            "http://",
            "http:///x",
            "http://u:hunter2@x",
            "http://x/?k=hunter2",
            "https://x#hunter2",
        ] {
            let problem = with(bad).base_url_problem().expect(bad);
            assert!(!problem.to_string().contains("hunter2"), "{problem}");
        }
    }
}
