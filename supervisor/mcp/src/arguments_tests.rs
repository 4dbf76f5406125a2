use proptest::prelude::*;
use rmcp::model::NumberOrString;
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use super::*;

fn tap(input: &[u8], max_line_bytes: usize) -> (Vec<u8>, SeenArguments) {
    let seen = SeenArguments::default();
    let mut tap = LineTap::new(input, max_line_bytes, seen.clone());
    let mut out = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(tap.read_to_end(&mut out)).unwrap();
    (out, seen)
}

fn text(seen: &SeenArguments, id: NumberOrString) -> Option<String> {
    seen.take(&id).map(|raw| raw.0.to_string())
}

#[test]
fn every_byte_is_passed_on_and_arguments_are_kept_by_their_call() {
    let lines = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","arguments":{"n":12345678901234567890123,"s":"7"}}}"#,
        "\n",
        "no JSON\n\r\n",
        r#"{ "params" : {"arguments" : {} , "name":"t"}, "method": "tools/call", "id": 2 }"#,
        "\r\n",
        r#"{"id":3,"method":"tools/call","params":{"name":"t"}}"#,
    );
    let (out, seen) = tap(lines.as_bytes(), 1000);
    assert_eq!(out, lines.as_bytes());
    assert_eq!(text(&seen, NumberOrString::Number(3)), None);
    let kept = text(&seen, NumberOrString::String("a".into()));
    assert_eq!(kept.as_deref(), Some(r#"{"n":12345678901234567890123,"s":"7"}"#));
    assert_eq!(text(&seen, NumberOrString::Number(2)).as_deref(), Some("{}"));
    assert_eq!(text(&seen, NumberOrString::Number(2)), None);
}

#[test]
fn a_line_over_the_limit_is_passed_on_unseen_and_the_next_one_is_seen() {
    let call = |id: u8, pad: usize| {
        format!(
            "{{\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"arguments\":{{\"p\":\"{}\"}}}}}}\n",
            "x".repeat(pad)
        )
    };
    let lines = call(1, 100_000) + &call(2, 10);
    let (out, seen) = tap(lines.as_bytes(), 10_000);
    assert_eq!(out, lines.as_bytes());
    assert_eq!(text(&seen, NumberOrString::Number(1)), None);
    assert!(text(&seen, NumberOrString::Number(2)).is_some());
}

#[test]
fn lines_that_are_no_calls_do_not_fill_it() {
    let lines: String = (0..100)
        .map(|id| format!("{{\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"arguments\":{{}}}}}}\n"))
        .collect();
    let (_, seen) = tap(lines.as_bytes(), 1000);
    assert_eq!(seen.0.lock().len(), MAX_SEEN);
}

#[test]
fn arguments_of_the_library_are_the_fallback() {
    let given = json!({"text": "7", "whole": 3, "none": null});
    let params = CallToolRequestParams::new("t").with_arguments(given.as_object().cloned().unwrap());
    assert_eq!(to_json(&params, None), r#"{"none":null,"text":"7","whole":3}"#);
    assert_eq!(to_json(&params, Some(&RawArguments("{}".into()))), "{}");
    assert_eq!(to_json(&CallToolRequestParams::new("t"), None), "");
}

proptest! {
    #[test]
    fn nothing_is_lost_whatever_comes(
        pieces in prop::collection::vec("[a-z{}\":,]{0,40}\n{0,2}", 0..20), max in 1..60usize,
    ) {
        let text = pieces.concat();
        prop_assert_eq!(tap(text.as_bytes(), max).0, text.as_bytes());
    }
}
