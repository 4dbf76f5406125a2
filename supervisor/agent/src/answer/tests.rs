use proptest::prelude::*;
use serde_json::json;
use talon_llm::model::Usage;

use super::*;

fn says(text: &str, finish: Finish) -> Answer {
    Answer {
        text: text.to_owned(),
        calls: vec![],
        finish,
        usage: Some(Usage::default()),
        model: "m".to_owned(),
        ..Answer::default()
    }
}

fn critic() -> Schema {
    let schema = json!({
        "type": "object",
        "properties": { "score": { "type": "integer", "minimum": 0 }, "issues": { "type": "array", "items": { "type": "string" } } },
        "required": ["score", "issues"],
        "additionalProperties": false,
    });
    Schema::new(schema).expect("a schema")
}

#[test]
fn without_a_schema_any_text_is_an_answer_and_none_is_not() {
    let AnswerVerdict::Accepted(answer) = check(&says(" hello \n", Finish::Stop), None) else {
        panic!("it is one")
    };
    assert_eq!((answer.text.as_str(), answer.value), ("hello", None));
    // A part of one is none, whatever it says.
    for (finish, error) in [
        (Finish::Length, AnswerError::TooLong),
        (Finish::Filtered, AnswerError::Withheld),
        (Finish::Refused, AnswerError::Refused),
    ] {
        assert_eq!(check(&says("hel", finish), None), AnswerVerdict::Invalid(error));
    }
    for (finish, error) in [
        (Finish::Stop, AnswerError::Empty),
        (Finish::ToolCalls, AnswerError::Empty),
        (Finish::Length, AnswerError::CutOff),
        (Finish::Filtered, AnswerError::Withheld),
    ] {
        assert_eq!(check(&says(" \n", finish), None), AnswerVerdict::Invalid(error));
    }
}

#[test]
fn json_is_found_in_words_and_fences() {
    let fits = json!({ "score": 3, "issues": ["a } b"] });
    for text in [
        fits.to_string(),
        format!("Here it is:\n```json\n{fits}\n```\nAnything else?"),
        format!("As [1] says {{or not}}: {fits} and {{}}"),
        format!("{{\"score\": \"high\"}} no, {fits}"),
    ] {
        let AnswerVerdict::Accepted(answer) = check(&says(&text, Finish::Stop), Some(&critic())) else {
            panic!("{text}")
        };
        assert_eq!(answer.value.as_ref(), Some(&fits), "{text}");
        assert_eq!(answer.text, fits.to_string());
    }
}

#[test]
fn what_does_not_fit_goes_back_with_the_places() {
    let AnswerVerdict::Invalid(error) =
        check(&says(r#"{"score": -1, "issues": [7]}"#, Finish::Stop), Some(&critic()))
    else {
        panic!("it does not fit")
    };
    let text = error.feedback(1, 2);
    for part in ["at /score:", "at /issues/0:", "(try 1 of 2)", "Note of the agent"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(error.word(), "answer_invalid");
    assert_eq!(
        check(&says("no.", Finish::Stop), Some(&critic())),
        AnswerVerdict::Invalid(AnswerError::NoJson)
    );
    assert_eq!(
        check(&says(r#"{"score": 1"#, Finish::Length), Some(&critic())),
        AnswerVerdict::Invalid(AnswerError::CutOff)
    );
}

#[test]
fn errors_are_few_and_short_whatever_the_answer_holds() {
    let long = format!(r#"{{"score": {:?}, "issues": [{}]}}"#, "x".repeat(100_000), vec!["1"; 500].join(","));
    let AnswerVerdict::Invalid(error) = check(&says(&long, Finish::Stop), Some(&critic())) else {
        panic!("it does not fit")
    };
    assert!(error.feedback(1, 2).len() < 3000, "{}", error.feedback(1, 2).len());
}

#[test]
fn a_schema_that_needs_a_stranger_or_much_time_is_refused() {
    for schema in [
        json!({ "$ref": "https://example.org/schema.json" }),
        json!({ "$ref": "file:///etc/passwd" }),
        json!({ "type": 7 }),
        json!({ "pattern": "(?=a)b" }),
        json!({ "pattern": "(((a{1000}){1000}){1000})" }),
    ] {
        assert!(matches!(Schema::new(schema.clone()), Err(SchemaError::Unusable(_))), "{schema}");
    }
    let large = json!({ "enum": ["x".repeat(300_000)] });
    assert!(matches!(Schema::new(large), Err(SchemaError::TooLarge { .. })));
    // What would be exponential with backtracking.
    let patient = Schema::new(json!({ "pattern": "^(a+)+$" })).expect("a schema");
    assert!(patient.check(&json!(format!("{}b", "a".repeat(50_000)))).is_err());
}

proptest! {
    #[test]
    fn any_text_gets_a_verdict(text in "[\\[\\]{}\",:a1\\\\ ]{0,200}") {
        let _ = check(&says(&text, Finish::Stop), Some(&critic()));
    }
}

#[test]
fn many_brackets_take_no_time_that_grows_with_their_square() {
    // With a try from each bracket this would not come to an end.
    for text in ["[".repeat(200_000), "{".repeat(200_000), "[{".repeat(100_000), "{\"".repeat(100_000)] {
        assert_eq!(
            check(&says(&text, Finish::Stop), Some(&critic())),
            AnswerVerdict::Invalid(AnswerError::NoJson)
        );
    }
}
