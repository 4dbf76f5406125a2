use serde_json::json;

use super::*;
use crate::request::refusal;
use rmcp::model::ErrorData;

#[test]
fn texts_are_joined_and_the_rest_is_described() {
    let result = json!({"content": [
        {"type": "text", "text": "one"},
        {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="},
        {"type": "audio", "data": ""},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 12},
        {"type": "resource", "resource": {"uri": "x:1", "mimeType": "text/plain", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "x:2", "blob": "AAAA"}},
        {"type": "video", "data": "x"},
        7,
    ]});
    assert_eq!(
        answer(result).unwrap().content(),
        "one\n[image image/png, 5 bytes]\n[audio of an unknown type, 0 bytes]\n\
         [resource file:///a, a, text/plain, 12 bytes, not read]\n[resource x:1, text/plain]\ninside\n\
         [resource x:2, 3 bytes]\n[content of the unknown type \"video\", not shown]\n\
         [content of the unknown type \"\", not shown]"
    );
}

#[test]
fn structured_content_is_kept() {
    let both =
        answer(json!({"content": [{"type": "text", "text": "22"}], "structuredContent": {"t": 22}})).unwrap();
    assert_eq!((both.content(), both.structured_content()), ("22", Some(&json!({"t": 22}))));
    let alone = answer(json!({"structuredContent": [1, 2], "resultType": "complete"})).unwrap();
    assert_eq!((alone.content(), alone.structured_content()), ("[1,2]", Some(&json!([1, 2]))));
    assert_eq!(answer(json!({"content": []})).unwrap().content(), "");
}

#[test]
fn what_is_no_result_is_an_error() {
    for (result, says) in [
        (json!({"isError": true, "content": [{"type": "text", "text": "no such file"}]}), "no such file"),
        (json!({"isError": true, "structuredContent": {"code": 5}}), "{\"code\":5}"),
        (json!({"isError": true}), "without giving a reason"),
        (json!({"resultType": "input_required", "inputRequests": {}}), "elicitation"),
        (json!({"resultType": "task", "task": {}}), "`task`"),
        (json!({"other": 1}), "no content"),
        (json!("text"), "no content"),
    ] {
        let said = answer(result).unwrap_err().message().to_owned();
        assert!(said.contains(says), "{said}");
    }
    let refused =
        refusal(&ErrorData::new(rmcp::model::ErrorCode(-32602), "x".repeat(9000), Some(json!([1]))));
    assert!(refused.message().starts_with("the MCP server answers with error -32602: xxx"), "{refused}");
    assert!(refused.message().ends_with("… ([1])") && refused.message().len() < 1200);
}

#[test]
fn sizes_of_base64_are_those_of_what_it_stands_for() {
    for (text, bytes) in [("", 0), ("QQ==", 1), ("QUI=", 2), ("QUJD", 3), ("QUJDRA", 4)] {
        assert_eq!(decoded_bytes(text), bytes, "{text}");
    }
}

// Promises: MCP-25
#[test]
fn what_is_no_text_stands_beside_it() {
    let png = "iVBORw0KGgo";
    let result = json!({"content": [
        {"type": "image", "mimeType": "image/png", "data": png},
        {"type": "audio", "mimeType": "audio/wav", "data": "?no base64?"},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "size": 12},
        {"type": "resource", "resource": {"uri": "x:1", "mimeType": "text/plain", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "x:2", "blob": "AAAA"}},
    ]});
    let output = answer(result).unwrap();
    assert!(
        output.content().contains("[audio audio/wav, 8 bytes, not passed on: its data is no base64]"),
        "{}",
        output.content()
    );
    let found: Vec<(&str, &str, &[u8], &str)> = output
        .media()
        .iter()
        .map(|item| (item.kind.as_str(), item.uri.as_str(), item.data.as_slice(), item.text.as_str()))
        .collect();
    let expected: [(&str, &str, &[u8], &str); 4] = [
        ("image", "", b"\x89PNG\r\n\x1a\n", ""),
        ("link", "file:///a", b"", ""),
        ("resource", "x:1", b"", "inside"),
        ("resource", "x:2", b"\0\0\0", ""),
    ];
    assert_eq!(found, expected);
}

// Promises: MCP-26
#[test]
fn media_fit_into_one_answer() {
    let mib = |n: usize| "A".repeat(n * (4 << 20) / 3 / 4 * 4);
    let image = |data: String| json!({"type": "image", "mimeType": "image/png", "data": data});
    let large = answer(json!({"content": [image(mib(100))]})).unwrap();
    assert!(
        large.content().ends_with("too large to be passed on]") && large.media().is_empty(),
        "{}",
        large.content()
    );
    let many = answer(json!({"content": vec![image(mib(2)); 5]})).unwrap();
    assert_eq!(many.media().len(), 2);
    assert_eq!(many.content().matches("the answer has too much of it").count(), 3);
    let beside =
        answer(json!({"content": [{"type": "text", "text": "x".repeat(5 << 20)}, image(mib(4))]})).unwrap();
    assert!(beside.media().is_empty());
}
