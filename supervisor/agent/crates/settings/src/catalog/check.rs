//! Checks of a catalog beyond its types.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::entry::{CatalogEntry, ModelRef};
use crate::model::{CatalogKeys, Cost, Model};
use crate::sampling::SamplingNumber;
use talon_sanitize::nearest;

/// The most models. The router considers each of them for each request; an aggregator's whole list has some
/// hundreds. One more is a problem of the catalog. Not configurable.
pub const MAX_MODELS: usize = 1000;

/// The heaviest weight.
pub const MAX_WEIGHT: u32 = 1000;

/// The longest name of a model, and the longest alias; names go into labels, logs and tables.
const MAX_NAME_BYTES: usize = 200;
const MAX_ALIAS_BYTES: usize = 64;

/// A problem of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogProblem {
    /// The keys below `models.catalog`.
    pub path: Vec<String>,
    /// The problem.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl fmt::Display for CatalogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "models.catalog")?;
        for key in &self.path {
            write!(f, ".{key}")?;
        }
        write!(f, ": {}; {}", self.message, self.help)
    }
}

/// All problems of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogProblems(pub Vec<CatalogProblem>);

impl fmt::Display for CatalogProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let newline = if index > 0 { "\n" } else { "" };
            write!(f, "{newline}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CatalogProblems {}

pub(super) fn check(
    keys: &CatalogKeys,
    providers: &BTreeSet<String>,
) -> Result<Vec<CatalogEntry>, CatalogProblems> {
    let mut check = Check { found: Vec::new(), providers };
    if keys.0.len() > MAX_MODELS {
        let message = format!("{} models are more than {MAX_MODELS}", keys.0.len());
        check.problem(&[], message, "list the ones that are to be used");
    }
    let mut entries = Vec::with_capacity(keys.0.len().min(MAX_MODELS));
    for (key, model) in keys.0.iter().take(MAX_MODELS) {
        entries.extend(check.entry(key, model));
    }
    // The order of keys differs from that of pairs, since a slash sorts after some characters.
    entries.sort_by(|a, b| a.id.cmp(&b.id));
    check.aliases(&entries);
    if check.found.is_empty() { Ok(entries) } else { Err(CatalogProblems(check.found)) }
}

struct Check<'a> {
    found: Vec<CatalogProblem>,
    providers: &'a BTreeSet<String>,
}

impl Check<'_> {
    fn problem(&mut self, path: &[&str], message: impl Into<String>, help: impl Into<String>) {
        let path = path.iter().map(|&key| key.to_owned()).collect();
        self.found.push(CatalogProblem { path, message: message.into(), help: help.into() });
    }

    fn entry(&mut self, key: &str, model: &Model) -> Option<CatalogEntry> {
        let id = self.id(key);
        self.model(key, model);
        Some(CatalogEntry { id: id?, model: model.clone() })
    }

    fn id(&mut self, key: &str) -> Option<ModelRef> {
        let well_written =
            key.len() <= MAX_NAME_BYTES && !key.chars().any(|c| c.is_control() || c.is_whitespace());
        let id: ModelRef = match key.parse() {
            Ok(id) if well_written => id,
            Ok(_) => {
                let shown: String = key.chars().take(40).flat_map(char::escape_default).collect();
                self.problem(
                    &[&shown],
                    "this name is too long, or has white space in it",
                    "write it as the provider does",
                );
                return None;
            }
            Err(problem) => {
                self.problem(&[key], problem.to_string(), "put the provider before it");
                return None;
            }
        };
        if !self.providers.contains(&id.provider) {
            let near = nearest(&id.provider, self.providers.iter().map(String::as_str));
            let help = match near.first() {
                Some(near) => format!("did you mean {near}?"),
                None if self.providers.is_empty() => "configure one under models.providers".to_owned(),
                None => format!("there are: {}", listed(self.providers)),
            };
            self.problem(&[key], format!("no provider is called {:?}", id.provider), help);
        }
        Some(id)
    }

    fn model(&mut self, key: &str, model: &Model) {
        let Model {
            alias,
            tier: _,
            context_window,
            max_output_tokens,
            tools: _,
            vision: _,
            cost,
            free,
            weight,
            // Their schemas check them.
            priority: _,
            temperature: _,
            thinking: _,
            top_p,
            max_tokens,
        } = model;
        if !top_p.is_none_or(SamplingNumber::is_part) {
            let help = "write for instance 0.95, or leave it out";
            self.problem(&[key, "top_p"], "it is a part of 1, above 0", help);
        }
        match max_tokens {
            Some(0) => {
                let help = "leave it out, or write how long answers should be at most";
                self.problem(&[key, "max_tokens"], "an answer of 0 tokens is none", help);
            }
            Some(asked) if u64::from(*asked) > model.output_limit() => {
                let message = format!(
                    "{asked} tokens are more than the {} that an answer may have",
                    model.output_limit()
                );
                self.problem(&[key, "max_tokens"], message, "correct one of the two");
            }
            _ => {}
        }
        if *context_window == 0 {
            self.problem(
                &[key, "context_window"],
                "a window of 0 tokens holds nothing",
                "write what the provider says of the model",
            );
        }
        match max_output_tokens {
            Some(0) => {
                let help = "leave it out, or write what the provider says of the model";
                self.problem(&[key, "max_output_tokens"], "an answer of 0 tokens is none", help);
            }
            Some(most) if *context_window > 0 && u64::from(*most) > *context_window => {
                let message =
                    format!("{most} tokens are more than context_window ({context_window}) has room for");
                self.problem(&[key, "max_output_tokens"], message, "correct one of the two");
            }
            _ => {}
        }
        match (cost, free) {
            (None, false) => {
                let help =
                    "write cost: { input: …, output: … } in dollars for a million tokens, or free: true";
                self.problem(&[key, "cost"], "what it costs is not said", help);
            }
            (Some(cost), true) if *cost != Cost::default() => {
                self.problem(
                    &[key, "free"],
                    "it is free and costs something",
                    "leave one of free and cost out",
                );
            }
            (Some(cost), _) if cost.cached_input.is_some_and(|cached| cached > cost.input) => {
                let message = "what is read from the cache costs more than what is not";
                self.problem(&[key, "cost", "cached_input"], message, "check whether the two are swapped");
            }
            _ => {}
        }
        if !(1..=MAX_WEIGHT).contains(weight) {
            let message = format!("{weight} is not between 1 and {MAX_WEIGHT}");
            self.problem(&[key, "weight"], message, "100 is an ordinary one");
        }
        if let Some(alias) = alias
            && !is_alias(alias)
        {
            let help = "use up to 64 letters, digits, '.', '_' and '-'";
            self.problem(&[key, "alias"], "this is no alias", help);
        }
    }

    /// Checks that an alias names one model, and nothing else.
    fn aliases(&mut self, entries: &[CatalogEntry]) {
        let mut taken: BTreeMap<&str, &ModelRef> = BTreeMap::new();
        for entry in entries {
            let Some(alias) = entry.model.alias.as_deref() else { continue };
            let named =
                || entries.iter().map(|other| &other.id).find(|id| id.name == alias && **id != entry.id);
            let other = taken.insert(alias, &entry.id).or_else(named);
            if let Some(other) = other {
                let key = entry.id.to_string();
                let message = format!("{alias:?} means {other} already");
                self.problem(&[&key, "alias"], message, "choose another alias for one of them");
            }
        }
    }
}

fn is_alias(alias: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=MAX_ALIAS_BYTES).contains(&alias.len()) && alias.bytes().all(fits)
}

fn listed(names: &BTreeSet<String>) -> String {
    /// A list in a sentence.
    const MAX_LISTED: usize = 10;
    let listed: Vec<&str> = names.iter().take(MAX_LISTED).map(String::as_str).collect();
    listed.join(", ")
}
