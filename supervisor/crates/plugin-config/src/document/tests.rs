use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::units::Duration;

#[derive(Debug, Deserialize, JsonSchema)]
struct Example {
    name: String,
    #[serde(default)]
    timeout: Option<Duration>,
    #[serde(default)]
    quiet: bool,
    #[serde(default)]
    free: serde_json::Map<String, Value>,
}

fn parse(text: &str) -> Result<Example, String> {
    let read = super::read(text, &Shape::of::<Example>(), Path::new("x.yaml"));
    read.map(|(example, _)| example).map_err(|problems| problems.to_string())
}

#[test]
fn a_text_becomes_its_type() {
    let example = parse("name: ${HOME}\ntimeout: 1m\nfree: { b: 1, a: [null, '2'] }\n").unwrap();
    assert_eq!(example.name, "${HOME}", "variables are filled in only where somebody says how");
    assert_eq!(example.timeout, Some(Duration::from_secs(60)));
    assert!(!example.quiet);
    assert_eq!(Value::Object(example.free), json!({ "b": 1, "a": [null, "2"] }));
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let error = parse("tiemout: 5s\nquiet: yes\nfree: { v: 0755 }\n").unwrap_err();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 4, "{error}");
    assert_eq!(lines[1], "x.yaml:1:1: tiemout: unknown key (did you mean timeout?)");
    assert!(lines[0].starts_with("x.yaml:1:1: name: is missing"), "{error}");
    assert!(lines[2].starts_with("x.yaml:2:8: quiet: expected true or false"), "{error}");
    assert!(lines[3].starts_with("x.yaml:3:12: free.v: is a number"), "{error}");
}

#[test]
fn a_text_that_cannot_be_read_is_one_problem() {
    for (text, says) in [("name: [", "not valid YAML"), ("- a", "expected a map"), ("", "name: is missing")] {
        let error = parse(text).unwrap_err();
        assert!(error.lines().count() == 1 && error.contains(says), "{text:?}: {error}");
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
struct MemoryLimit {
    #[serde(default)]
    #[expect(dead_code, reason = "only its key counts")]
    memory_bytes: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Overrides {
    #[serde(default)]
    #[expect(dead_code, reason = "only its key counts")]
    timeout: Option<Duration>,
    #[serde(default)]
    #[expect(dead_code, reason = "only its key counts")]
    limits: MemoryLimit,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Layered {
    #[serde(default)]
    #[expect(dead_code, reason = "only its key counts")]
    sandbox: MemoryLimit,
    #[serde(default)]
    #[expect(dead_code, reason = "only its key counts")]
    overrides: std::collections::BTreeMap<String, Overrides>,
}

// Promises: CONF-23
#[test]
fn a_misplaced_key_is_shown_its_nearest_place() {
    for (text, place) in [
        ("overrides: { web: { memory_bytes: 3 } }", "overrides.web.limits.memory_bytes"),
        ("overrides: { web: { limits: { timeout: 3s } } }", "overrides.web.timeout"),
        ("sandbox: { timeout: 3s }", "overrides.NAME.timeout"),
        ("memory_bytes: 3", "sandbox.memory_bytes"),
    ] {
        let problems =
            super::read::<Layered>(text, &Shape::of::<Layered>(), Path::new("x.yaml")).unwrap_err();
        let error = problems.to_string();
        assert!(error.ends_with(&format!("unknown key (there is {place})")), "{text}: {error}");
    }
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Place {
    /// A variable.
    Env(String),
    /// A path.
    #[schemars(extend("format" = "path"))]
    File(String),
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Kinds {
    #[serde(default)]
    places: Vec<Place>,
    #[serde(default)]
    #[schemars(extend("format" = "dollars", "x-decimals" = 6, "maximum" = 100))]
    price: Option<String>,
    #[serde(default)]
    #[schemars(extend("format" = "duration", "x-longest-seconds" = 60))]
    wait: Option<String>,
}

fn kinds(text: &str) -> Result<Kinds, String> {
    let read = super::read(text, &Shape::of::<Kinds>(), Path::new("x.yaml"));
    read.map(|(kinds, _)| kinds).map_err(|problems| problems.to_string())
}

#[test]
fn one_of_some_keys_is_told_from_none_and_from_several() {
    let read = kinds("places: [{ env: A }, { file: b }]").unwrap();
    assert_eq!(read.places, [Place::Env("A".to_owned()), Place::File("b".to_owned())]);
    for (text, said) in [
        ("places: [{ env: A, file: b }]", "one of the keys env and file, found 2 of them"),
        ("places: [{}]", "found 0 of them"),
        ("places: [{ envy: A }]", "places[0].envy: unknown key (did you mean places[0].env?)"),
        ("places: [A]", "write its keys below it"),
        ("places: [[A]]", "found a list"),
        ("places: [{ env: [A] }]", "places[0].env: expected a text, found a list"),
    ] {
        let error = kinds(text).unwrap_err();
        assert!(error.lines().count() == 1 && error.contains(said), "{text}: {error}");
    }
}

#[test]
fn amounts_of_dollars_keep_every_digit() {
    for text in ["0.15", "100", "'3'", "0.000001", "100.00"] {
        let price = kinds(&format!("price: {text}")).unwrap().price;
        assert_eq!(price.as_deref(), Some(text.trim_matches('\'')));
    }
    assert_eq!(kinds("price: null").unwrap().price, None);
    for text in
        ["-1", "1e3", "$2", "2 USD", "0.0000001", "100.01", "101", "1,5", ".5", "99999999999999999999999"]
    {
        let error = kinds(&format!("price: {text}")).unwrap_err();
        assert!(error.contains("price: expected an amount of dollars") && error.contains("write"), "{error}");
    }
}

#[test]
fn a_duration_with_an_end_is_neither_nothing_nor_beyond_it() {
    assert_eq!(kinds("wait: 60s").unwrap().wait.as_deref(), Some("1m"));
    for (text, said) in [("0s", "more than nothing"), ("61s", "at most 1m"), ("7", "has no unit")] {
        let error = kinds(&format!("wait: {text}")).unwrap_err();
        assert!(error.contains(said), "{text}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_panics(text in "[a-z:{}\\[\\],\"' \n\t&*#!|>%@`$0-9-]{0,200}") {
        let _ = parse(&text);
    }

    /// Free values mean what another reader of YAML 1.2 makes of them.
    #[test]
    fn free_values_mean_what_yaml_says(
        word in "(null|~|true|False|[-+]?(0|[1-9][0-9]{0,3})|0x[0-9a-f]{1,4}|0o[0-7]{1,3}|[-+]?[0-9]{0,3}\\.[0-9]{1,3}(e[-+]?[0-9])?|[a-z]{1,5}|yes|'5'|\"true\")",
    ) {
        let ours = parse(&format!("name: n\nfree: {{ v: {word} }}\n")).unwrap().free["v"].clone();
        let options = serde_saphyr::options! { strict_booleans: true };
        let theirs: Value = serde_saphyr::from_str_with_options(&word, options).unwrap();
        prop_assert_eq!(ours, theirs);
    }
}
