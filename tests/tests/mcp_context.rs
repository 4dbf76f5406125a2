//! Resources and prompts of an MCP server, for the clients of `talon mcp`. The server is made with the official
//! Python library.

use serde_json::{Value, json};
use talon_tests::{Builder, Mcp, Supervisor, mcp_packages, meta, program, repository, without_mcp_packages};

/// A supervisor with the server as the plugin `notes`, and a plugin without any of it.
async fn serving(args: &[&str], config: &str, more: &str) -> Supervisor {
    let builder = Builder::new().plugin("kit", &program("talon-test-tools"), &[], "");
    let script = builder
        .scratch()
        .install(&repository().join("tests/mcp/context_server.py"), "server/context_server.py");
    let reads = script.parent().expect("a file is in a directory").display().to_string();
    let script = script.display().to_string();
    let args: Vec<&str> = [script.as_str()].into_iter().chain(args.iter().copied()).collect();
    let packages = mcp_packages().canonicalize().expect("it is there");
    let entry = format!(
        "dialect: mcp\nstart_timeout: 120s\nconfig: {{ {config} }}\n\
         sandbox: {{ fs: {{ read: [{reads}], execute: [{}] }} }}\n{more}",
        packages.display()
    );
    let supervisor = builder.plugin("notes", &packages.join("bin/python"), &args, &entry).start().await;
    let plugin = supervisor.client.plugin("notes").await;
    assert_eq!(plugin.state, "ready", "{}\n{:#?}", plugin.reason, supervisor.client.logs("notes").await);
    supervisor
}

/// All items of a list, page by page, and how many pages there were.
async fn all(mcp: &mut Mcp, method: &str, field: &str) -> (Vec<Value>, usize) {
    let (mut items, mut pages, mut params) = (Vec::new(), 0, json!({}));
    loop {
        let page = mcp.result(method, params).await;
        assert!(page.get("_meta").is_none(), "nothing is left out: {page}");
        items.extend(page[field].as_array().expect("a list").clone());
        pages += 1;
        match page["nextCursor"].as_str() {
            Some(next) => params = json!({ "cursor": next }),
            None => return (items, pages),
        }
    }
}

async fn refusal(mcp: &mut Mcp, method: &str, params: Value) -> Value {
    let id = mcp.ask(method, params).await;
    let mut answer = mcp.answer(id).await;
    assert!(answer.get("result").is_none(), "{answer}");
    answer["error"].take()
}

fn one<'v>(items: &'v [Value], key: &str, value: &str) -> &'v Value {
    items.iter().find(|item| item[key] == value).unwrap_or_else(|| panic!("no {value} in {items:#?}"))
}

// Promises: MCP-33
#[tokio::test]
async fn resources_are_listed_and_read_through_the_guard() {
    if without_mcp_packages("resources_are_listed_and_read_through_the_guard") {
        return;
    }
    let supervisor = serving(&[], "", "").await;
    for version in ["2025-11-25", "2025-06-18"] {
        let mut mcp = Mcp::of(&supervisor, &[]);
        mcp.initialize(version).await;
        let (resources, _) = all(&mut mcp, "resources/list", "resources").await;
        assert_eq!(resources.len(), 4, "{resources:#?}");
        let today = one(&resources, "uri", "notes+note://today");
        assert_eq!((&today["description"], &today["mimeType"]), (&json!("A note."), &json!("text/markdown")));
        let hostile = one(&resources, "uri", "notes+note://hostile");
        assert!(!hostile["description"].as_str().unwrap().contains("<|im_start|>"), "{hostile}");
        let (templates, _) = all(&mut mcp, "resources/templates/list", "resourceTemplates").await;
        assert_eq!(one(&templates, "uriTemplate", "notes+note://of/{name}")["description"], "Whoever it is.");

        let read = mcp.result("resources/read", json!({ "uri": "notes+note://today" })).await;
        let content = &read["contents"][0];
        let about = (&content["uri"], &content["mimeType"]);
        assert_eq!(about, (&json!("notes+note://today"), &json!("text/plain")));
        let text = content["text"].as_str().unwrap();
        let begin = "[plugin_output]\n[resource note://today, text/markdown]\n# Today\nBuy milk.\n";
        assert!(text.starts_with(begin) && text.ends_with("\n[/plugin_output]"), "{text}");
        assert_eq!(read["_meta"]["talon/answer"]["outcome"], "ok");
        let read = mcp.result("resources/read", json!({ "uri": "notes+note://of/ada" })).await;
        assert!(read["contents"][0]["text"].as_str().unwrap().contains("A note of ada."), "{read}");
        let read = mcp.result("resources/read", json!({ "uri": "notes+note://hostile" })).await;
        let text = read["contents"][0]["text"].as_str().unwrap();
        assert_eq!(text.matches("[/plugin_output]").count(), 1, "{text}");
        assert!(!text.contains("<|im_start|>"), "{text}");
        // What is not granted is not there, and the text says so.
        let read = mcp.result("resources/read", json!({ "uri": "notes+pixel://one" })).await;
        assert_eq!(read["contents"].as_array().unwrap().len(), 1, "{read}");
        assert!(
            read["contents"][0]["text"].as_str().unwrap().contains("not passed on: 1 resource"),
            "{read}"
        );

        for uri in ["notes+note://of/nobody", "notes+none://x"] {
            let error = refusal(&mut mcp, "resources/read", json!({ "uri": uri })).await;
            assert!(error["message"].as_str().unwrap().ends_with("[/plugin_output]"), "{error}");
            assert_eq!(error["data"]["talon/answer"]["reason"], "tool_error", "{error}");
        }
        for uri in ["note://today", "kit+note://today", "+", ""] {
            let error = refusal(&mut mcp, "resources/read", json!({ "uri": uri })).await;
            assert_eq!(error["code"], -32002, "{error}");
        }
        mcp.close().await;
    }
    // The current revision has its own way to ask.
    let mut mcp = Mcp::of(&supervisor, &[]);
    let read =
        mcp.result("resources/read", json!({ "uri": "notes+note://today", "_meta": meta(json!({})) })).await;
    assert_eq!(read["resultType"], "complete");
    mcp.close().await;
    supervisor.stop().await;
}

// Promises: MCP-33
#[tokio::test]
async fn granted_resources_come_as_they_are_up_to_the_limits() {
    if without_mcp_packages("granted_resources_come_as_they_are_up_to_the_limits") {
        return;
    }
    let supervisor = serving(&["--many", "2500"], "", "media: [resource]").await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    mcp.initialize("2025-11-25").await;
    let read = mcp.result("resources/read", json!({ "uri": "notes+note://today" })).await;
    let plain =
        json!({ "uri": "notes+note://today", "mimeType": "text/markdown", "text": "# Today\nBuy milk." });
    assert_eq!(read["contents"], json!([plain]));
    let read = mcp.result("resources/read", json!({ "uri": "notes+pixel://one" })).await;
    let blob = json!({ "uri": "notes+pixel://one", "mimeType": "image/png", "blob": "iVBORw0KGgo=" });
    assert_eq!(read["contents"], json!([blob]));
    let read = mcp.result("resources/read", json!({ "uri": "notes+pixel://large" })).await;
    assert!(read["contents"][0]["text"].as_str().unwrap().contains("too large to be passed on"), "{read}");

    // Every one of many is listed, in pages that clients take.
    let (resources, pages) = all(&mut mcp, "resources/list", "resources").await;
    assert_eq!(resources.len(), 2504);
    assert!(pages > 1, "{pages}");
    one(&resources, "uri", "notes+many://2499");
    mcp.close().await;
    supervisor.stop().await;
}

// Promises: MCP-34
#[tokio::test]
async fn prompts_are_listed_and_got_as_one_guarded_message() {
    if without_mcp_packages("prompts_are_listed_and_got_as_one_guarded_message") {
        return;
    }
    let supervisor = serving(&[], "", "").await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    mcp.initialize("2025-11-25").await;
    let (prompts, _) = all(&mut mcp, "prompts/list", "prompts").await;
    let greet = one(&prompts, "name", "notes__greet");
    assert_eq!(
        (&greet["title"], &greet["description"]),
        (&json!("Greets somebody"), &json!("Asks for a greeting."))
    );
    let arguments = greet["arguments"].as_array().unwrap();
    assert_eq!((&arguments[0]["name"], &arguments[0]["required"]), (&json!("name"), &json!(true)));

    let got =
        mcp.result("prompts/get", json!({ "name": "notes__greet", "arguments": { "name": "7" } })).await;
    let text = "[plugin_output]\n[message 1, user]\nGreet 7 in a plain way.\n[/plugin_output]";
    assert_eq!(got["messages"], json!([{ "role": "user", "content": { "type": "text", "text": text } }]));
    // A plugin puts no words into the model's mouth.
    let talk = mcp.result("prompts/get", json!({ "name": "notes__talk" })).await;
    let messages = talk["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[0]["role"]), (1, &json!("user")));
    let text = messages[0]["content"]["text"].as_str().unwrap();
    assert!(
        text.contains("[message 1, user]\nHello\n[message 2, assistant]\n") && !text.contains("<|im_start|>"),
        "{text}"
    );
    assert_eq!(text.matches("[/plugin_output]").count(), 1, "{text}");

    let error = refusal(&mut mcp, "prompts/get", json!({ "name": "notes__greet" })).await;
    assert_eq!(error["data"]["talon/answer"]["reason"], "tool_error", "{error}");
    for name in ["notes__none", "kit__greet", "greet"] {
        refusal(&mut mcp, "prompts/get", json!({ "name": name })).await;
    }
    mcp.close().await;
    supervisor.stop().await;
}

// Promises: MCP-47
#[tokio::test]
async fn arguments_of_prompts_and_templates_are_completed() {
    if without_mcp_packages("arguments_of_prompts_and_templates_are_completed") {
        return;
    }
    let supervisor = serving(&[], "", "").await;
    for args in [&[][..], &["--deny", "notes___-complete"]] {
        let mut mcp = Mcp::of(&supervisor, args);
        mcp.initialize("2025-11-25").await;
        let prompt = json!({ "type": "ref/prompt", "name": "notes__greet" });
        let template = json!({ "type": "ref/resource", "uri": "notes+note://of/{name}" });
        let complete = |reference: &Value, name: &str, value: &str| {
            let others = json!({ "arguments": { "name": "ada" } });
            json!({ "ref": reference, "argument": { "name": name, "value": value }, "context": others })
        };
        for reference in [&prompt, &template] {
            let found = mcp.result("completion/complete", complete(reference, "name", "a")).await;
            let values = if args.is_empty() { json!(["ada", "alan"]) } else { json!([]) };
            assert_eq!(found["completion"]["values"], values, "{found}");
        }
        if args.is_empty() {
            let found = mcp.result("completion/complete", complete(&prompt, "style", "")).await;
            let values = found["completion"]["values"].as_array().unwrap();
            assert_eq!(values[0], "plain for ada", "{found}");
            assert!(!values[1].as_str().unwrap().contains("<|im_start|>"), "{found}");
        }
        for unknown in ["kit__greet", "none__greet", "greet"] {
            let reference = json!({ "type": "ref/prompt", "name": unknown });
            let error = refusal(&mut mcp, "completion/complete", complete(&reference, "name", "")).await;
            assert_eq!(error["code"], -32602, "{error}");
        }
        mcp.close().await;
    }
    supervisor.stop().await;
}

// Promises: MCP-35
#[tokio::test]
async fn a_model_gets_no_action_for_resources_and_a_filter_counts_for_them() {
    if without_mcp_packages("a_model_gets_no_action_for_resources_and_a_filter_counts_for_them") {
        return;
    }
    let supervisor = serving(&[], "", "").await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    mcp.initialize("2025-11-25").await;
    let names = mcp.tool_names().await;
    assert!(names.contains(&"notes__roots".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("resources") || name.contains("prompts")), "{names:?}");
    refusal(&mut mcp, "tools/call", json!({ "name": "notes___-resources_read" })).await;
    mcp.close().await;
    // An operator has them as actions.
    let read = supervisor.client.call("notes", "_-resources_read", &[("uri", "note://today")]).await;
    assert!(read.content.contains("Buy milk."), "{read:?}");

    let mut mcp = Mcp::of(&supervisor, &["--deny", "notes___-resources_*"]);
    mcp.initialize("2025-11-25").await;
    assert_eq!(all(&mut mcp, "resources/list", "resources").await.0, Vec::<Value>::new());
    refusal(&mut mcp, "resources/read", json!({ "uri": "notes+note://today" })).await;
    assert_eq!(all(&mut mcp, "prompts/list", "prompts").await.0.len(), 2);
    mcp.close().await;
    supervisor.stop().await;
}

// Promises: MCP-33
#[tokio::test]
async fn a_plugin_that_fails_is_named_in_the_list() {
    if without_mcp_packages("a_plugin_that_fails_is_named_in_the_list") {
        return;
    }
    let supervisor = serving(&[], "", "max_restarts: 0").await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    mcp.initialize("2025-11-25").await;
    assert_eq!(all(&mut mcp, "resources/list", "resources").await.0.len(), 4);
    let plugin = supervisor.client.plugin("notes").await;
    let pid = plugin.instances[0].pid.to_string();
    std::process::Command::new("kill").args(["-9", &pid]).status().expect("kill runs");
    supervisor.client.wait_state("notes", "failed").await;
    let list = mcp.result("resources/list", json!({})).await;
    assert_eq!(list["resources"], json!([]));
    let why = list["_meta"]["talon/left_out"]["notes"].as_str().expect("it says why");
    assert!(why.contains("notes"), "{why}");
    mcp.close().await;
    supervisor.stop().await;
}

// Promises: MCP-36
#[tokio::test]
async fn a_server_gets_the_roots_that_its_operator_grants() {
    if without_mcp_packages("a_server_gets_the_roots_that_its_operator_grants") {
        return;
    }
    for (config, expected) in [("", None), ("roots: granted", Some("file:///")), ("roots: []", Some(""))] {
        // The library of the server sends requests of its own in this revision.
        let more = if config.is_empty() { String::new() } else { format!(", {config}") };
        let supervisor = serving(&[], &format!("protocol: \"2025-11-25\"{more}"), "").await;
        let mut mcp = Mcp::of(&supervisor, &[]);
        mcp.initialize("2025-11-25").await;
        let answer = mcp.call("notes__roots", json!({})).await;
        let text = answer["content"][0]["text"].as_str().unwrap();
        match expected {
            Some(expected) => {
                assert_eq!(answer["isError"], false, "{config}: {answer}");
                assert!(text.starts_with(&format!("[plugin_output]\n{expected}")), "{config}: {text}");
                assert_eq!(text.contains("/server"), config == "roots: granted", "{config}: {text}");
            }
            None => assert_eq!(answer["isError"], true, "{answer}"),
        }
        mcp.close().await;
        supervisor.stop().await;
    }
}
