use serde_json::json;
use talon_guard::{EnvelopeMode, Guard, GuardSettings};
use talon_llm::model::{Thoughts, ToolCall};

use super::*;
use crate::tool_result::{CallOutcome, Provenance};

fn call(bytes: usize) -> ToolCall {
    let arguments = json!({ "text": "x".repeat(bytes) });
    let arguments = Arguments::Object(arguments.as_object().cloned().expect("an object"));
    ToolCall { id: "c".to_owned(), name: "files__write".to_owned(), arguments }
}

#[test]
fn an_answer_fits_into_the_store_whatever_a_model_says() {
    let answer = Answer {
        text: "ä".repeat(1_000_000),
        calls: vec![call(500_000), call(500_000), call(10)],
        thoughts: Some(Thoughts {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            data: json!("t".repeat(300_000)),
        }),
        ..Answer::default()
    };
    let answer = bound_answer(answer, None);
    assert!(answer.text.len() <= MAX_TEXT_BYTES && answer.finish == Finish::Length);
    assert!(matches!(answer.calls[0].arguments, Arguments::Object(_)));
    assert!(matches!(&answer.calls[1].arguments, Arguments::Unreadable(text) if text.contains("too many")));
    assert!(matches!(answer.calls[2].arguments, Arguments::Object(_)), "a small one has room all the same");
    assert!(answer.thoughts.is_none());

    let control = Arguments::Unreadable("\u{1}".repeat(400_000));
    let named = ToolCall { id: "i".repeat(1 << 19), name: "ä".repeat(1 << 19), arguments: control };
    let answer = bound_answer(Answer { calls: vec![named; 3], ..Answer::default() }, None);
    assert!(serde_json::to_string(&answer.calls).expect("it can be written").len() < 10_000, "escapes count");
    assert_eq!(answer.calls[2].id, "call-2", "ids stay apart");
}

#[test]
fn a_result_stays_a_block_however_long_it_is() {
    let settings = GuardSettings { envelope: EnvelopeMode::Quoted, ..GuardSettings::default() };
    let guard = Guard::new(settings).expect("the defaults are in order");
    for text in ["a word or two ", "漢字", "🦀"] {
        let long = text.repeat(600_000 / text.len());
        let block = guard.wrap("files", "c", long.clone()).into_string();
        let result = bound_result(
            ToolResult {
                outcome: CallOutcome::Succeeded,
                block,
                output: long.clone(),
                provenance: Provenance::default(),
            },
            guard.sanitizer(),
        );
        assert!(result.block.len() < 1 << 20, "{}", result.block.len());
        assert!(Wrapped::parse(&result.block, guard.sanitizer()).is_some());
        assert!(result.output.starts_with("sha256:"));
        let other = bound_result(ToolResult { output: long + ".", ..result.clone() }, guard.sanitizer());
        assert_ne!(result.output, other.output, "one result is still told from another");
    }
}
