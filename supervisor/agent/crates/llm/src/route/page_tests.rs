//! `docs/models.md` says what is.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::FallbackKeys;
use super::catalog::{Catalog, CatalogKeys, MAX_MODELS};
use super::cost::Budget;
use super::fallback::{Attempt, ChainSettings, MAX_ATTEMPTS};
use super::retry::{self, CLASSES, FallbackTarget};
use super::show::TYPICAL_TURN;
use super::task::{Complexity, Task, tier_for};

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../docs/models.md"));

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    models: Models,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Models {
    #[serde(default)]
    catalog: CatalogKeys,
    #[serde(default)]
    budget: Budget,
    #[serde(default)]
    fallback: FallbackKeys,
}

/// The blocks of code in a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    PAGE.split(opening.as_str()).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn its_examples_are_good() {
    let examples = blocks("yaml");
    assert_eq!(examples.len(), 4);
    for example in examples {
        let Document { models } = serde_saphyr::from_str(example).expect("an example that can be read");
        let provider = |key: &String| key.split('/').next().expect("a provider").to_owned();
        let providers: BTreeSet<String> = models.catalog.0.keys().map(provider).collect();
        let catalog = Catalog::new(&models.catalog, &providers).expect("a good catalog");
        assert_eq!(models.fallback.problems(), Vec::<String>::new());
        let budget = models.budget.per_session.is_some();
        // What stands alone is not empty, and the example of the defaults has the defaults.
        assert!(!catalog.entries().is_empty() || budget || example.contains("fallback:"));
        assert_eq!(models.fallback, FallbackKeys::default());
    }
    let [json] = blocks("json")[..] else { panic!("there is one example in JSON") };
    let attempts: Vec<Attempt> = serde_json::from_str(json).expect("attempts");
    let same: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(serde_json::to_value(attempts).expect("JSON"), same);
}

fn holds(text: &str) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(PAGE).contains(&words(text)), "docs/models.md does not say: {text}");
}

#[test]
fn its_table_of_tiers_is_the_one_in_use() {
    for task in Task::ALL {
        let [simple, moderate, complex] = Complexity::ALL.map(|complexity| tier_for(task, complexity));
        holds(&format!("| {task} | {simple} | {moderate} | {complex} |"));
    }
}

#[test]
fn its_table_of_errors_is_the_one_in_use() {
    let rows: BTreeMap<&str, &str> =
        PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).collect();
    for class in CLASSES {
        let policy = retry::policy(class);
        let again = if policy.retried { "3 times" } else { "no" };
        let then = match policy.next {
            FallbackTarget::NoFallback => "an error",
            FallbackTarget::OtherModel if policy.retried => "another model",
            FallbackTarget::OtherModel => "another model, at once",
            FallbackTarget::OtherProviderFirst => "another provider, else another model of this one",
            FallbackTarget::OtherProvider if policy.retried => "another provider",
            FallbackTarget::OtherProvider => "another provider, at once",
        };
        let counts = if policy.counts { "yes" } else { "no" };
        let row = rows.get(retry::word(class)).expect("a row for each class");
        assert!(row.ends_with(&format!("| {again} | {then} | {counts} |")), "{class:?}: {row}");
    }
}

#[test]
fn its_numbers_are_the_defaults() {
    let ChainSettings { patience, silence, retry, breaker, .. } = ChainSettings::default();
    let ms = |time: std::time::Duration| time.as_millis();
    let minutes = |time: std::time::Duration| time.as_secs() / 60;
    let (first, longest) = (ms(retry.backoff_initial), retry.backoff_max.as_secs());
    holds(&format!(
        "Between tries {first} ms, {} ms, {} ms and so on up to {longest} s",
        first * 2,
        first * 4
    ));
    holds(&format!("up to {} ms more by chance", ms(retry.jitter)));
    let longest = retry.retry_after_max.as_secs();
    holds(&format!("is waited for up to {longest} s"));
    holds("a request waits once for the first that has enough of resting, within its turn's time");
    holds(&format!("({} s if it does not)", retry.rate_limit_rest.as_secs()));
    holds(&format!("a provider without credit for {} minutes; an hour at most", minutes(retry.billing_rest)));
    assert_eq!(minutes(retry.rest_max), 60);
    holds(&format!("After {} requests in a row that failed", breaker.failures));
    holds(&format!("is left alone for {} s; a request counts", breaker.open_for.as_secs()));
    holds(&format!("at least {} s apart", breaker.trial_every.as_secs()));
    assert_eq!(breaker.successes, 2);
    holds(&format!("twice as long, up to {} minutes", minutes(breaker.open_max)));
    holds(&format!("nothing was heard of it for {} minutes", minutes(silence)));
    holds(&format!("together have {} minutes", minutes(patience)));
    holds(&format!("There are at most {MAX_ATTEMPTS} tries"));
    assert_eq!(MAX_MODELS, 1000);
    assert_eq!((TYPICAL_TURN.input_tokens, TYPICAL_TURN.output_tokens), (6000, 500));
    assert_eq!(retry.retries, 3);
}
