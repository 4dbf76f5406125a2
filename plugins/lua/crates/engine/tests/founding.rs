//! The founding scripts, unchanged.

mod support;

use std::collections::BTreeMap;

use support::{MemoryHost, context};
use talon_lua_engine::{Limits, LogLevel, Outcome, Point, Script};

fn load(source: &str) -> Script {
    Script::load("founding.lua", source.as_bytes(), &Limits::default(), &[]).expect("it loads")
}

fn passes() -> Outcome {
    Outcome::Continue { message: None, metadata: BTreeMap::new() }
}

fn notes(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

const FILTER: &str = include_str!("../../../../../plugins-examples/lua/filter.lua");
const EXPERT: &str = include_str!("../../../../../plugins-examples/lua/expert_classify.lua");
const VOCABULARY: &str = include_str!("../../../../../plugins-examples/lua/vocabulary_guard.lua");
const PREPROCESS: &str = include_str!("../../../../../plugins-examples/lua/smart_preprocess.lua");
const COMPLIANCE: &str = include_str!("../../../../../plugins-examples/lua/compliance_check.lua");
const HYBRID: &str = include_str!("../../../../../plugins-examples/lua/hybrid_classifier.lua");

// Promises: LUA-4
#[test]
fn the_filter_drops_blocked_words() {
    let mut script = load(FILTER);
    assert_eq!(script.points(), [Point::Filter]);
    let mut said =
        |message| script.call(Point::Filter, &context(message), MemoryHost::new()).expect("an outcome");
    assert_eq!(said("good morning"), passes());
    assert_eq!(said("this is spam"), Outcome::Drop { reason: "blocked word: spam".to_owned() });
}

// Promises: LUA-4
#[test]
fn the_expert_rules_classify() {
    let mut script = load(EXPERT);
    let host = MemoryHost::new();
    let outcome =
        script.call(Point::PreHook, &context("URGENT bug in the shop"), host.clone()).expect("an outcome");
    let metadata = notes(&[("category", "jira"), ("priority", "critical")]);
    assert_eq!(outcome, Outcome::Continue { message: None, metadata });
    assert_eq!(*host.log.borrow(), [(LogLevel::Info, "classified as jira/critical".to_owned())]);
    assert_eq!(script.call(Point::PreHook, &context("hello"), MemoryHost::new()), Ok(passes()));
}

// Promises: LUA-4
#[test]
fn the_vocabulary_is_enforced() {
    let outcome =
        load(VOCABULARY).call(Point::PostHook, &context("fix the bug asap, guys"), MemoryHost::new());
    let message = Some("fix the defect with high priority, team".to_owned());
    assert_eq!(outcome, Ok(Outcome::Continue { message, metadata: BTreeMap::new() }));
}

// Promises: LUA-4
#[test]
fn a_small_model_translates() {
    let mut script = load(PREPROCESS);
    let host = MemoryHost::answering(&["de", "Good morning"]);
    let outcome = script.call(Point::PreHook, &context("Guten Morgen"), host.clone());
    let metadata = notes(&[("original_language", "de")]);
    assert_eq!(outcome, Ok(Outcome::Continue { message: Some("Good morning".to_owned()), metadata }));
    let asked = host.asked.borrow();
    assert!(
        asked[0].0.ends_with("ISO code: Guten Morgen") && asked[0].1.as_deref() == Some("small"),
        "{asked:?}"
    );
    let english = script.call(Point::PreHook, &context("Good day"), MemoryHost::answering(&["en"]));
    assert_eq!(english, Ok(passes()));
}

// Promises: LUA-4
#[test]
fn a_small_model_redacts() {
    let mut script = load(COMPLIANCE);
    let host = MemoryHost::answering(&["YES", "Call [REDACTED]"]);
    let outcome = script.call(Point::PostHook, &context("Call Ada"), host.clone());
    let message = Some("Call [REDACTED]".to_owned());
    assert_eq!(outcome, Ok(Outcome::Continue { message, metadata: BTreeMap::new() }));
    assert_eq!(*host.log.borrow(), [(LogLevel::Warn, "PII detected in response, redacting".to_owned())]);
    assert_eq!(script.call(Point::PostHook, &context("Hi"), MemoryHost::answering(&["NO"])), Ok(passes()));
    // Without a model its verdict is nil, and the script fails: whoever called it decides what that means.
    let error = script.call(Point::PostHook, &context("Hi"), MemoryHost::new()).expect_err("it fails");
    assert!(error.message.contains("founding.lua:9: attempt to index nil"), "{error}");
}

// Promises: LUA-4
#[test]
fn rules_come_before_the_model() {
    let mut script = load(HYBRID);
    let outcome = script.call(Point::PreHook, &context("my API_key is x"), MemoryHost::new());
    let message = Some("[blocked: contains API key]".to_owned());
    assert_eq!(outcome, Ok(Outcome::Continue { message, metadata: notes(&[("blocked", "true")]) }));
    let risky = script.call(Point::PreHook, &context("rm -rf"), MemoryHost::answering(&["HIGH"]));
    let metadata = notes(&[("security_review", "required")]);
    assert_eq!(risky, Ok(Outcome::Continue { message: None, metadata }));
}
