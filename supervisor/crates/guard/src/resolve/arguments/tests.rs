use proptest::prelude::*;

use super::*;
use crate::resolve::Actions;

fn parameter(r#type: &str, schema: &str) -> Parameter {
    let text = |text: &str| text.to_owned();
    Parameter { name: text("p"), r#type: text(r#type), schema: text(schema), ..Default::default() }
}

/// The problems of the arguments: the same in the first call and in later ones, and whether schemas are
/// cached or not.
fn all_problems(action: &Action, args: &BTreeMap<String, String>) -> String {
    let actions = || [("a".to_owned(), action.clone())];
    let check = |actions: &Actions| check(actions.get("a").unwrap(), args, &Patterns::default()).to_string();
    let (keeping, parsing) = (Actions::from_iter(actions()), Actions::without_cache(actions()));
    let first = check(&keeping);
    for later in [check(&keeping), check(&parsing), check(&parsing)] {
        assert_eq!(later, first);
    }
    first
}

fn problems(parameter: Parameter, value: &str) -> String {
    let action = Action { parameters: vec![parameter], ..Default::default() };
    all_problems(&action, &[("p".to_owned(), value.to_owned())].into())
}

// Promises: GUARD-31
#[test]
fn each_type_takes_its_json_spelling() {
    for (r#type, good, bad) in [
        (
            "integer",
            &["5", "-3", "0", "5.0", " 7 ", "18446744073709551615"][..],
            &["5.5", "five", "", "+5", "true"][..],
        ),
        ("number", &["5", "-1.5", "1e3"], &["NaN", "1,5", "\"5\""]),
        ("boolean", &["true", "false"], &["True", "yes", "1", ""]),
        ("array", &["[]", "[1, \"a\"]"], &["{}", "a,b", "[1"]),
        ("object", &["{}", "{\"a\": {\"b\": 1}}"], &["[]", "{a:1}", "null"]),
        ("string", &["", "5", "{", "\u{0}"], &[]),
        ("", &["", "anything"], &[]),
        // An unknown type is not checked.
        ("file", &["", "5", "[oops"], &[]),
    ] {
        for value in good {
            assert_eq!(problems(parameter(r#type, ""), value), "", "{type} {value:?}");
        }
        for value in bad {
            assert!(problems(parameter(r#type, ""), value).contains("must be"), "{type} {value:?}");
        }
    }
}

#[test]
fn json_that_is_nested_too_deeply_is_refused_and_does_not_overflow_the_stack() {
    let deep = "[".repeat(500_000) + &"]".repeat(500_000);
    assert!(problems(parameter("array", ""), &deep).contains("must be a JSON array"));
}

// Promises: GUARD-31
#[test]
fn the_schema_is_held_against_the_value_read_by_its_type() {
    let limit = r#"{"type": "integer", "minimum": 1, "maximum": 100}"#;
    assert_eq!(problems(parameter("integer", limit), "100"), "");
    assert_eq!(problems(parameter("integer", limit), "101"), "argument \"p\" must be at most 100");
    let colour = r#"{"enum": ["red", "green"]}"#;
    assert_eq!(problems(parameter("string", colour), "red"), "");
    assert_eq!(problems(parameter("", colour), "blue"), "argument \"p\" must be one of \"red\", \"green\"");
}

#[test]
fn under_an_unknown_type_one_reading_has_to_please_the_schema() {
    let five = r#"{"const": 5}"#;
    assert_eq!(problems(parameter("whatever", five), "5"), "");
    assert_ne!(problems(parameter("whatever", five), "6"), "");
    let text = r#"{"const": "5"}"#;
    assert_eq!(problems(parameter("whatever", text), "5"), "");
}

#[test]
fn an_unusable_schema_is_ignored() {
    for schema in
        ["not json", "[]", "true", "{\"minimum\":", &format!("{{\"const\":\"{}\"}}", "x".repeat(70_000))]
    {
        assert_eq!(problems(parameter("string", schema), "anything"), "");
    }
}

#[test]
fn a_thousand_problems_are_told_in_a_few_lines() {
    let args = (0..100_000).map(|i| (format!("arg{i}"), String::new())).collect();
    let action = Action {
        parameters: (0..1000)
            .map(|i| Parameter { name: format!("p{i}"), required: true, ..Default::default() })
            .collect(),
        ..Default::default()
    };
    let text = all_problems(&action, &args);
    assert!(text.len() < 1000 && text.ends_with("; and 100992 more"), "{text}");
    let text = signature(&action);
    assert!(text.len() < 1000 && text.ends_with(" and 984 more"), "{text}");
}

#[test]
fn an_injected_argument_is_never_missing_nor_shown() {
    let mut session = parameter("string", "");
    session.required = true;
    let action =
        Action { parameters: vec![session], inject_context_args: vec!["p".to_owned()], ..Default::default() };
    assert_eq!(all_problems(&action, &BTreeMap::new()), "");
    assert_eq!(signature(&action), "It takes no arguments");
}

proptest! {
    /// `all_problems` compares the cached schema with one that is parsed again.
    #[test]
    fn a_kept_schema_says_what_it_said_at_first(
        r#type in "(|string|integer|array|object|x)",
        schema in r#"\{("(minimum|maxLength|const|required)": ?([0-9]|"a"|\["a"\])(, )?)?("(enum|type)": (\["a", 1\]|"integer"))?\}"#,
        value in r#"([0-9]|a|"a"|\[1\]|\{"a": 1\}|[a-z]{0,5})"#,
    ) {
        prop_assert!(problems(parameter(&r#type, &schema), &value).len() < 1000);
    }

    // Promises: GUARD-32
    #[test]
    fn any_value_under_any_type_and_schema_ends_in_a_bounded_verdict(
        r#type in "(|string|integer|number|boolean|array|object|x)",
        schema in ".{0,60}", value in ".{0,60}",
    ) {
        prop_assert!(problems(parameter(&r#type, &schema), &value).len() < 1000);
    }
}
