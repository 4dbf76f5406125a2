//! Arguments from an MCP client to an MCP server and results back, through `talon mcp`, the guard and the
//! bridge, with servers made by the official Python library: what arrives is what was sent.

use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use talon_proto::host::{ExecuteRequest, Outcome};
use talon_tests::{Builder, Mcp, Supervisor, program, repository, skip, target};

/// How many schemas one run tries, each with all of [`instances`].
const SCHEMAS: usize = 48;

fn packages() -> PathBuf {
    target().join("mcp/python")
}

fn is_missing(test: &str) -> bool {
    let python = packages().join("bin/python");
    if !python.exists() {
        skip(test, &format!("there is no {} (tests/scripts/deps.sh test installs it)", python.display()));
    }
    !python.exists()
}

/// A supervisor with the server as the plugin `server`.
async fn serving(builder: Builder, args: &[&str], more: &str) -> Supervisor {
    let script = builder
        .scratch()
        .install(&repository().join("tests/mcp/arguments_server.py"), "server/arguments_server.py");
    let script = script.display().to_string();
    let args: Vec<&str> = [script.as_str()].into_iter().chain(args.iter().copied()).collect();
    let packages = packages().canonicalize().expect("it is there");
    let reads = Path::new(&script).parent().expect("a file is in a directory").display();
    let entry = format!(
        "dialect: mcp\nstart_timeout: 60s\nsandbox: {{ fs: {{ read: [{reads}], execute: [{}] }} }}\n{more}",
        packages.display()
    );
    let supervisor = builder.plugin("server", &packages.join("bin/python"), &args, &entry).start().await;
    let plugin = supervisor.client.plugin("server").await;
    assert_eq!(plugin.state, "ready", "{}\n{:#?}", plugin.reason, supervisor.client.logs("server").await);
    supervisor
}

async fn client(supervisor: &Supervisor, args: &[&str]) -> Mcp {
    let mut mcp = Mcp::of(supervisor, args);
    mcp.initialize("2025-06-18").await;
    mcp
}

/// The text between the delimiters.
fn said(answer: &Value) -> &str {
    let text = answer["content"][0]["text"].as_str().expect("a text");
    let text =
        text.strip_prefix("[plugin_output]\n").and_then(|text| text.strip_suffix("\n[/plugin_output]"));
    text.unwrap_or_else(|| panic!("no block: {answer}"))
}

// Promises: MCP-20
#[tokio::test]
async fn a_typed_python_server_gets_the_types_that_a_client_sent() {
    if is_missing("a_typed_python_server_gets_the_types_that_a_client_sent") {
        return;
    }
    let supervisor = serving(Builder::new(), &["typed"], "").await;
    let mut mcp = client(&supervisor, &[]).await;
    let list = mcp.result("tools/list", json!({})).await;
    let tools = list["tools"].as_array().expect("a list");
    let types = tools.iter().find(|tool| tool["name"] == "server__types").expect("it is offered");
    let maybe = &types["inputSchema"]["properties"]["maybe"]["anyOf"];
    assert_eq!(maybe, &json!([{"type": "integer"}, {"type": "null"}]), "the offered schema keeps null");
    for (arguments, expected) in [
        (r#"{"either": "7", "anything": "true"}"#, json!({"either": "str '7'", "anything": "str 'true'"})),
        (r#"{"either": 7, "anything": true}"#, json!({"either": "int 7", "anything": "bool True"})),
        (
            r#"{"either": "true", "anything": "nil"}"#,
            json!({"either": "str 'true'", "anything": "str 'nil'"}),
        ),
        (
            r#"{"either": "1.10", "anything": null}"#,
            json!({"either": "str '1.10'", "anything": "NoneType None"}),
        ),
        (
            r#"{"either": true, "anything": {"a": ["1", 1]}}"#,
            json!({"either": "bool True", "anything": "dict {'a': ['1', 1]}"}),
        ),
        (r#"{"either": 1, "anything": 1, "maybe": null}"#, json!({"maybe": "NoneType None"})),
        (r#"{"either": 1, "anything": 1}"#, json!({"maybe": "int 5"})),
        (
            r#"{"either": 1, "anything": 123456789012345678901234567890, "large": 12345678901234567890123}"#,
            json!({"anything": "int 123456789012345678901234567890", "large": "int 12345678901234567890123"}),
        ),
        (
            r#"{"either": 1, "anything": 1, "choice": 1, "many": ["1", 1]}"#,
            json!({"choice": "int 1", "many": "list ['1', 1]"}),
        ),
        // A model that writes a number as a text for a parameter that takes no text is understood.
        (r#"{"either": 1, "anything": 1, "large": "12"}"#, json!({"large": "int 12"})),
    ] {
        let id = 1000 + u64::try_from(arguments.len()).expect("short");
        mcp.line(&format!(
            r#"{{"jsonrpc": "2.0", "id": {id}, "method": "tools/call", "params": {{"name": "server__types", "arguments": {arguments}}}}}"#
        ))
        .await;
        let answer = mcp.answer(id).await["result"].take();
        assert_eq!(answer["isError"], false, "{arguments}: {answer}");
        let given: Value =
            serde_json::from_str(answer["structuredContent"]["result"].as_str().expect("a text"))
                .expect("JSON");
        for (name, of) in expected.as_object().expect("an object") {
            assert_eq!(&given[name], of, "{arguments}");
        }
    }
    for (arguments, says) in [
        (json!({"either": 1, "anything": 1, "text": 7}), "must be a string"),
        (json!({"either": 1, "anything": 1, "large": 1.5}), "must be an integer"),
        (json!({"anything": 1}), "\"either\" is missing"),
    ] {
        let answer = mcp.call("server__types", arguments).await;
        assert!(answer["isError"] == true && said(&answer).contains(says), "{answer}");
    }
}

// Promises: MCP-21
#[tokio::test]
async fn a_client_of_the_host_sends_texts_or_json_and_never_two_calls_in_one() {
    if is_missing("a_client_of_the_host_sends_texts_or_json_and_never_two_calls_in_one") {
        return;
    }
    let supervisor = serving(Builder::new(), &["typed"], "").await;
    let request = |texts: &[(&str, &str)], json: &str| ExecuteRequest {
        plugin: "server".to_owned(),
        action: "types".to_owned(),
        args: texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect(),
        arguments_json: json.to_owned(),
        ..ExecuteRequest::default()
    };
    // Of texts the schema decides: what is JSON that the parameter takes is JSON.
    for (texts, json, either) in [
        (&[("either", "7"), ("anything", "1")][..], "", "int 7"),
        (&[("either", "\"7\""), ("anything", "1")], "", "str '7'"),
        (&[("either", "seven"), ("anything", "1")], "", "str 'seven'"),
        (&[], r#"{"either": "7", "anything": 1}"#, "str '7'"),
        (&[("either", "7"), ("anything", "1")], r#"{"either": "7", "anything": 1}"#, "str '7'"),
    ] {
        let answer = supervisor.client.execute(request(texts, json)).await.expect("an answer");
        assert_eq!(answer.outcome(), Outcome::Ok, "{answer:?}");
        let structured: Value = serde_json::from_str(&answer.structured_content).expect("JSON");
        let given: Value =
            serde_json::from_str(structured["result"].as_str().expect("a text")).expect("JSON");
        assert_eq!(given["either"], either, "{texts:?} {json}");
    }
    for (texts, json) in [
        (&[("either", "8"), ("anything", "1")][..], r#"{"either": 7, "anything": 1}"#),
        (&[], r#"{"either": 7, "either": 8, "anything": 1}"#),
        (&[], "[7]"),
    ] {
        let answer = supervisor.client.execute(request(texts, json)).await.expect("an answer");
        assert_eq!(
            (answer.outcome(), answer.reason.as_str()),
            (Outcome::Refused, "bad_arguments"),
            "{answer:?}"
        );
    }
}

/// A schema of one property.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["string", "integer", "number", "boolean", "array", "object", "null"])
            .prop_map(|word| json!({ "type": word })),
        prop::sample::subsequence(vec!["string", "integer", "boolean", "null", "array", "object"], 2..4)
            .prop_map(|words| json!({ "type": words })),
        prop::sample::subsequence(
            vec![json!("a"), json!("7"), json!(7), json!(true), json!(null), json!(1.5)],
            1..4
        )
        .prop_map(|values| json!({ "enum": values })),
        prop::sample::select(vec![json!("7"), json!(7), json!("true"), json!(null)])
            .prop_map(|value| json!({ "const": value })),
        Just(json!({})),
        Just(json!({ "type": "string", "minLength": 2 })),
        Just(json!({ "type": ["integer", "null"], "minimum": 2 })),
    ];
    let combined = leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|branches| json!({ "anyOf": branches })),
            prop::collection::vec(inner.clone(), 2..3).prop_map(|branches| json!({ "oneOf": branches })),
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            inner.prop_map(
                |field| json!({ "type": "object", "properties": { "a": field }, "required": ["a"] })
            ),
        ]
    });
    (combined, prop::option::of(prop::sample::select(vec![json!(null), json!("7"), json!(7)]))).prop_map(
        |(mut schema, default)| {
            if let Some(default) = default {
                schema["default"] = default;
            }
            schema
        },
    )
}

fn instances() -> Vec<Option<Value>> {
    let given = [
        json!(null),
        json!(true),
        json!(7),
        json!(5.0),
        json!(1.5),
        json!("7"),
        json!("true"),
        json!("null"),
        json!("1.10"),
        json!("text"),
        json!(""),
        json!([]),
        json!(["7", 7]),
        json!({}),
        json!({"a": "7"}),
        json!({"a": 7}),
        json!({"a": null}),
    ];
    given.into_iter().map(Some).chain([None]).collect()
}

/// What the reference validator says of each pair.
fn verdicts(file: &Path) -> Vec<bool> {
    let output = Command::new(packages().join("bin/python"))
        .arg(repository().join("tests/mcp/arguments_server.py"))
        .arg("verdicts")
        .arg(file)
        .output()
        .expect("python starts");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// What fits its schema arrives as it was sent. What does not is an error, or stands for something that fits:
/// a text where no text is taken, or `null` for something optional.
// Promises: MCP-20
#[tokio::test]
async fn whatever_the_schema_what_fits_arrives_as_it_was_sent() {
    if is_missing("whatever_the_schema_what_fits_arrives_as_it_was_sent") {
        return;
    }
    let mut runner = TestRunner::deterministic();
    let mut schema = |required: bool| {
        let piece = any_schema().new_tree(&mut runner).expect("it can be made").current();
        let mut schema = json!({ "type": "object", "properties": { "p": piece } });
        if required {
            schema["required"] = json!(["p"]);
        }
        schema
    };
    let schemas: Vec<Value> = (0..SCHEMAS).map(|n| schema(n % 2 == 0)).collect();
    let arguments = |instance: &Option<Value>| {
        let fields: Map<String, Value> =
            instance.iter().map(|value| ("p".to_owned(), value.clone())).collect();
        Value::Object(fields)
    };
    let pairs: Vec<(&Value, Value)> = schemas
        .iter()
        .flat_map(|schema| instances().into_iter().map(move |i| (schema, i)))
        .map(|(schema, i)| (schema, arguments(&i)))
        .collect();
    let builder = Builder::new();
    let file = |name: &str, content: &Value| {
        let path = builder.scratch().path().join(name);
        std::fs::write(&path, content.to_string()).expect("it is written");
        path
    };
    let valid = verdicts(&file("pairs.json", &json!(pairs)));
    let listed = file("schemas.json", &json!(schemas));
    let listed = builder.scratch().install(&listed, "server/listed.json").display().to_string();
    let supervisor = serving(builder, &["schemas", &listed], "").await;
    let mut mcp = client(&supervisor, &[]).await;
    assert!(valid.iter().filter(|valid| **valid).count() > pairs.len() / 5, "too few fit");
    for (index, ((schema, arguments), fits)) in pairs.iter().zip(valid).enumerate() {
        let tool = format!("server__t{}", index / instances().len());
        let answer = mcp.call(&tool, arguments.clone()).await;
        let about = || format!("{schema} {arguments}: {answer}");
        if answer["isError"] == true {
            assert!(!fits, "it fits and is refused: {}", about());
            continue;
        }
        let got: Value = serde_json::from_str(said(&answer)).unwrap_or_else(|_| panic!("{}", about()));
        if fits {
            assert_eq!(got.to_string(), arguments.to_string(), "it arrived changed: {}", about());
        } else {
            let put_right = arguments["p"].is_string() || arguments["p"].is_null();
            assert!(put_right && got != *arguments, "it does not fit and was taken: {}", about());
        }
    }
}

// Promises: MCP-22
#[tokio::test]
async fn an_answer_over_the_limit_keeps_its_form_and_is_no_error() {
    if is_missing("an_answer_over_the_limit_keeps_its_form_and_is_no_error") {
        return;
    }
    let supervisor = serving(Builder::new(), &["typed"], "").await;
    let mut mcp = client(&supervisor, &[]).await;
    let small = mcp.call("server__rows", json!({"count": 2})).await;
    assert_eq!(said(&small).matches("row 1").count(), 1, "data that equals the text stands once: {small}");
    let large = mcp.call("server__rows", json!({"count": 20_000})).await;
    assert_eq!(large["isError"], false, "{}", large["content"][1]);
    let rows = large["structuredContent"]["rows"].as_array().expect("it keeps its form");
    assert!(rows.len() > 100 && large["structuredContent"].to_string().len() <= 64 << 10, "{}", rows.len());
    assert!(said(&large).contains("[truncated: structured content of "), "{}", &said(&large)[..400]);

    let mut guarded = client(&supervisor, &["--structured", "guarded"]).await;
    let answer = guarded.call("server__rows", json!({"count": 2})).await;
    assert_eq!(answer["structuredContent"], json!({ "plugin_output": answer["content"][0]["text"] }));
    let mut off = client(&supervisor, &["--structured", "off"]).await;
    assert!(off.call("server__rows", json!({"count": 2})).await.get("structuredContent").is_none());
    let list = off.result("tools/list", json!({})).await;
    assert!(list["tools"].as_array().expect("a list").iter().all(|tool| tool.get("outputSchema").is_none()));
}

// Promises: MCP-23
#[tokio::test]
async fn media_are_passed_on_where_they_are_granted_and_what_they_say_they_are() {
    let test_tools = program("talon-test-tools");
    let builder = Builder::new().plugin("without", &test_tools, &[], "");
    let builder = builder.plugin("kit", &test_tools, &[], "media: [image, resource]");
    let supervisor = builder.start().await;
    let mut mcp = client(&supervisor, &[]).await;
    let kinds = |answer: &Value| -> Vec<String> {
        let content = answer["content"].as_array().expect("content").iter();
        content.map(|item| item["type"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let image = mcp.call("kit__test_image_content", json!({})).await;
    assert_eq!(kinds(&image), ["text", "image"]);
    assert_eq!(image["content"][1]["mimeType"], "image/png", "{image}");
    let refused = mcp.call("without__test_image_content", json!({})).await;
    assert_eq!(kinds(&refused), ["text"]);
    assert!(said(&refused).contains("`media: [image]` in the entry of plugin without"), "{refused}");
    let audio = mcp.call("kit__test_audio_content", json!({})).await;
    assert!(kinds(&audio) == ["text"] && said(&audio).contains("`media: [audio]`"), "{audio}");
    let forged = mcp.call("kit__forged_image", json!({})).await;
    assert!(kinds(&forged) == ["text"] && said(&forged).contains("not of a known type"), "{forged}");
    let resource = mcp.call("kit__test_embedded_resource", json!({})).await;
    assert_eq!(resource["content"][1]["resource"]["uri"], "test://embedded-resource", "{resource}");
    // Who takes text only gets none.
    let answer = supervisor.client.call("kit", "test_image_content", &[]).await;
    assert!(answer.media.is_empty() && answer.content.contains("this client takes text only"), "{answer:?}");
}
