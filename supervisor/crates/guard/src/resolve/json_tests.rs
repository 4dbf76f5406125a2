//! Arguments that came as JSON.

use parking_lot::Mutex;
use talon_proto::plugin::Parameter;

use super::tests::{Reloaded, call};
use super::*;

fn parameter(name: &str, r#type: &str, required: bool, schema: &str) -> Parameter {
    Parameter {
        name: name.to_owned(),
        r#type: r#type.to_owned(),
        required,
        schema: schema.to_owned(),
        ..Default::default()
    }
}

/// The two forms of the arguments as they reach the plugin, or the refusal.
async fn sent(
    parameters: Vec<Parameter>,
    texts: &[(&str, &str)],
    json: &str,
    max_bytes: usize,
) -> Result<(BTreeMap<String, String>, String), CallError> {
    let inject_context_args = vec!["session_id".to_owned()];
    let action = Action { parameters, inject_context_args, ..Default::default() };
    sent_to(action, texts, json, max_bytes).await
}

async fn sent_to(
    action: Action,
    texts: &[(&str, &str)],
    json: &str,
    max_bytes: usize,
) -> Result<(BTreeMap<String, String>, String), CallError> {
    let actions = Arc::new([("a".to_owned(), action)].into_iter().collect::<Actions>());
    let grants = ContextGrants { context: ["session_id".to_owned()].into(), ..Default::default() };
    let directory = Reloaded(Arc::new(Mutex::new(actions)));
    let layer = ResolveLayer::new(directory, grants).max_argument_bytes(max_bytes);
    let mut service = layer.layer(tower::service_fn(async |call: Call| Ok::<_, CallError>(call)));
    let mut call = call("p", "a", texts);
    let texts = std::mem::take(&mut call.args);
    call.set_arguments(texts, json);
    call.context.insert("session_id".to_owned(), "s\"1".to_owned());
    let call = CallFields::from(service.call(call).await?);
    Ok((call.args, call.json.map(|json| json.to_json()).unwrap_or_default()))
}

async fn one(parameter: Parameter, json: &str) -> Result<String, String> {
    let sent = sent(vec![parameter], &[], json, DEFAULT_MAX_ARGUMENT_BYTES).await;
    sent.map(|(_, json)| json).map_err(|error| error.to_string())
}

// Promises: GUARD-84
#[tokio::test]
async fn types_stay_and_both_forms_go_down_together() {
    let parameters = vec![
        parameter("seven", "any", true, r#"{"anyOf": [{"type": "string"}, {"type": "integer"}]}"#),
        parameter("free", "any", false, ""),
        parameter("big", "integer", false, ""),
        parameter("none", "integer", false, r#"{"type": ["integer", "null"]}"#),
    ];
    let json = r#"{ "seven": "7", "free": "true", "big": 12345678901234567890123, "none": null }"#;
    let (texts, json) = sent(parameters, &[], json, DEFAULT_MAX_ARGUMENT_BYTES).await.unwrap();
    assert_eq!(
        json,
        r#"{"big":12345678901234567890123,"free":"true","none":null,"session_id":"s\"1","seven":"7"}"#
    );
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(
        texts,
        [("big", "12345678901234567890123"), ("free", "true"), ("session_id", "s\"1"), ("seven", "7")]
    );
}

// Promises: GUARD-85
#[tokio::test]
async fn two_forms_that_are_not_the_same_call_are_refused() {
    let parameters = || vec![parameter("path", "string", true, ""), parameter("n", "any", false, "")];
    let limit = DEFAULT_MAX_ARGUMENT_BYTES;
    let same = sent(parameters(), &[("path", "/a"), ("n", "7")], r#"{"path": "/a", "n": 7}"#, limit).await;
    assert_eq!(same.unwrap().1, r#"{"n":7,"path":"/a","session_id":"s\"1"}"#);
    for (texts, json, says) in [
        (&[("path", "/a")][..], r#"{"path": "/b"}"#, "different calls (argument \"path\")"),
        (&[("path", "/a")], r#"{"path": "/a", "n": 1}"#, "different calls (argument \"n\")"),
        (&[], r#"{"path": "/a", "path": "/b"}"#, "twice"),
        (&[], r#"["/a"]"#, "not an object"),
        (&[], r#"{"path": "/a"#, "not usable"),
    ] {
        let error = sent(parameters(), texts, json, limit).await.unwrap_err();
        assert_eq!(error.reason(), crate::reason::BAD_ARGUMENTS);
        assert!(error.to_string().contains(says), "{error}");
    }
}

// Promises: GUARD-86
#[tokio::test]
async fn a_value_has_to_be_of_a_kind_that_is_taken() {
    let nullable = r#"{"type": ["integer", "null"], "minimum": 1}"#;
    for (parameter, json, expected) in [
        (parameter("p", "integer", true, ""), r#"{"p": 5}"#, Ok("5")),
        (parameter("p", "integer", true, ""), r#"{"p": 5.5}"#, Err("must be an integer")),
        (parameter("p", "string", true, ""), r#"{"p": 5}"#, Err("must be a string")),
        (parameter("p", "", true, ""), r#"{"p": [1]}"#, Err("must be a string")),
        (parameter("p", "array", true, ""), r#"{"p": {"a": 1}}"#, Err("must be a JSON array")),
        (parameter("p", "integer", true, nullable), r#"{"p": true}"#, Err("must be of type integer or null")),
        (parameter("p", "integer", true, nullable), r#"{"p": null}"#, Ok("null")),
        (parameter("p", "integer", true, nullable), r#"{"p": 0}"#, Err("must be at least 1")),
        (parameter("p", "integer", true, ""), r#"{"p": null}"#, Err("must be an integer")),
        // What models do, put right.
        (parameter("p", "integer", true, nullable), r#"{"p": " 3 "}"#, Ok("3")),
        (parameter("p", "boolean", true, ""), r#"{"p": "True"}"#, Ok("true")),
        (parameter("p", "array", true, ""), r#"{"p": "[1, 2]"}"#, Ok("[1,2]")),
        (parameter("p", "integer", true, nullable), r#"{"p": "0"}"#, Err("must be at least 1")),
        (parameter("p", "integer", true, ""), r#"{"p": "many"}"#, Err("must be an integer")),
        (parameter("p", "integer", false, ""), r#"{"p": null}"#, Ok("")),
        (parameter("p", "integer", true, r#"{"default": 3}"#), "{}", Ok("")),
        (parameter("p", "integer", true, ""), "{}", Err("\"p\" is missing")),
    ] {
        let said = one(parameter.clone(), json).await;
        match expected {
            Ok("") => assert_eq!(said.unwrap(), r#"{"session_id":"s\"1"}"#, "{json}"),
            Ok(value) => {
                assert_eq!(said.unwrap(), format!(r#"{{"p":{value},"session_id":"s\"1"}}"#), "{json}");
            }
            Err(says) => assert!(said.as_ref().unwrap_err().contains(says), "{json}: {said:?}"),
        }
    }
}

#[tokio::test]
async fn what_is_put_right_is_put_right_in_both_forms() {
    let parameters = vec![parameter("n", "integer", true, ""), parameter("o", "object", false, "")];
    let (texts, json) = sent(parameters, &[], r#"{"n": " 3.0 ", "o": null}"#, 1000).await.unwrap();
    assert_eq!((texts["n"].as_str(), texts.contains_key("o")), ("3", false));
    assert_eq!(json, r#"{"n":3,"session_id":"s\"1"}"#);
}

// Promises: GUARD-36
#[tokio::test]
async fn null_does_not_fill_what_is_the_hosts() {
    let said = one(parameter("p", "string", false, ""), r#"{"session_id": null}"#).await.unwrap_err();
    assert!(said.contains("is filled by the host, leave it out"), "{said}");
    let said = one(parameter("p", "string", false, ""), r#"{"q": null}"#).await.unwrap_err();
    assert!(said.contains("\"q\" is unknown"), "{said}");
}

// Promises: GUARD-11
#[tokio::test]
async fn each_form_counts_against_the_limit() {
    let fits = r#"{"p": "12345678"}"#;
    let escaped = r#"{"p": "\n\n\n\n\n\n\n\n"}"#;
    let p = || vec![parameter("p", "string", true, "")];
    // With what is injected, the texts have 22 bytes in both cases; the JSON has 27, and 35.
    let limit = 27;
    assert!(sent(p(), &[], fits, limit).await.is_ok());
    let error = sent(p(), &[], escaped, limit).await.unwrap_err();
    assert_eq!(error.reason(), "arguments_too_large");
}

// Promises: GUARD-90
#[tokio::test]
async fn an_action_that_says_so_takes_arguments_that_it_does_not_name() {
    let action = |takes_further_arguments| Action {
        parameters: vec![parameter("a", "integer", false, "")],
        inject_context_args: vec!["session_id".to_owned()],
        takes_further_arguments,
        ..Default::default()
    };
    let json = r#"{"a":1,"b":{"c":[null]}}"#;
    let (texts, sent) = sent_to(action(true), &[], json, 1000).await.unwrap();
    assert_eq!(sent, r#"{"a":1,"b":{"c":[null]},"session_id":"s\"1"}"#);
    assert_eq!(texts["b"], r#"{"c":[null]}"#);
    let (_, sent) = sent_to(action(true), &[("b", "x")], "", 1000).await.unwrap();
    assert_eq!(sent, "");
    for (refused, says) in [
        (sent_to(action(false), &[], json, 1000).await, "argument \"b\" is unknown"),
        (sent_to(action(true), &[], r#"{"a":"x"}"#, 1000).await, "argument \"a\" must be"),
        (sent_to(action(true), &[], r#"{"session_id":"x"}"#, 1000).await, "is filled by the host"),
        (sent_to(action(true), &[], json, 20).await, "at most 20"),
    ] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
