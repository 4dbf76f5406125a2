//! `talon mcp`: the plugins' actions for MCP hosts, spoken to line by line.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use serde_json::{Value, json};
use talon_tests::{Builder, Mcp, Supervisor, alive, cli, cli_with, is_root, meta, program, skip};

async fn supervisor() -> Supervisor {
    Builder::new().plugin("kit", &program("talon-test-tools"), &[], "").start().await
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

// Promises: MCP-9
#[tokio::test]
async fn a_client_of_before_2026_lists_and_calls() {
    let supervisor = supervisor().await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    let about = mcp.initialize("2025-11-25").await;
    assert_eq!(about["protocolVersion"], "2025-11-25");
    let capabilities = json!({
        "tools": { "listChanged": true }, "resources": { "subscribe": true, "listChanged": true },
        "prompts": { "listChanged": true },
        "completions": {},
    });
    assert_eq!(about["capabilities"], capabilities);
    assert_eq!(about["serverInfo"]["name"], "talon");
    let list = mcp.result("tools/list", json!({})).await;
    let tool = |name: &str| {
        let found = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name);
        found.unwrap_or_else(|| panic!("{name} is missing in {list}")).clone()
    };
    let echo = tool("kit__echo");
    assert_eq!(echo["title"], "echo (kit)");
    assert_eq!(echo["annotations"]["readOnlyHint"], true);
    assert_eq!(tool("kit__destroy")["annotations"]["destructiveHint"], true);
    let schema = json!({
        "type": "object",
        "properties": {
            "text": { "type": "string", "description": "The text." },
            "count": { "type": "integer", "minimum": 0, "description": "The count." },
            "list": { "type": "array", "items": { "type": "string" }, "description": "The list." },
            "map": { "type": "object", "description": "The map." },
        },
        "required": ["text"],
        "additionalProperties": false,
    });
    assert_eq!(echo["inputSchema"], schema);
    assert_eq!(tool("kit__promised")["outputSchema"]["required"], json!(["sum"]));
    let names: Vec<&str> =
        list["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert!(!names.contains(&"kit__for_people"), "{names:?}");
    let long = names
        .iter()
        .find(|name| name.starts_with("kit_") && !name.starts_with("kit__"))
        .expect("a shortened name");
    assert_eq!(text(&mcp.call(long, json!({})).await), "[plugin_output]\nlong\n[/plugin_output]");

    // Strings as they are, all else as JSON text.
    let given = json!({ "text": "a \"b\"", "count": 3, "list": ["x", "y"], "map": { "k": [null] } });
    let answer = mcp.call("kit__echo", given).await;
    assert_eq!(answer["isError"], false);
    let came = json!({ "text": "a \"b\"", "count": "3", "list": "[\"x\",\"y\"]", "map": "{\"k\":[null]}" });
    assert_eq!(answer["structuredContent"], came);
    assert_eq!(mcp.call("kit__promised", json!({})).await["structuredContent"], json!({ "sum": 3 }));

    let (status, said) = mcp.close().await;
    assert!(status.success(), "{said}");
}

#[tokio::test]
async fn clients_of_every_older_revision_are_served() {
    let supervisor = supervisor().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let mut mcp = Mcp::of(&supervisor, &[]);
        assert_eq!(mcp.initialize(version).await["protocolVersion"], version);
        let list = mcp.result("tools/list", json!({})).await;
        assert!(list["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "kit__echo"), "{list}");
        let answer = mcp.call("kit__echo", json!({ "text": "old" })).await;
        assert!(text(&answer).contains("old"), "{version}: {answer}");
    }
}

// Promises: MCP-9
#[tokio::test]
async fn a_client_of_2026_asks_without_introducing_itself() {
    let supervisor = supervisor().await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    let found = mcp.result("server/discover", json!({ "_meta": meta(json!({})) })).await;
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{found}");
    assert_eq!(found["resultType"], "complete");
    let list = mcp.result("tools/list", json!({ "_meta": meta(json!({})) })).await;
    assert_eq!(
        (&list["resultType"], list["tools"].as_array().unwrap().is_empty()),
        (&json!("complete"), false)
    );
    assert!(list.get("ttlMs").is_some() && list.get("cacheScope").is_some(), "{list}");
    let call = json!({ "name": "kit__echo", "arguments": { "text": "x" }, "_meta": meta(json!({})) });
    let answer = mcp.result("tools/call", call).await;
    assert_eq!((&answer["isError"], &answer["structuredContent"]), (&json!(false), &json!({ "text": "x" })));

    // News come to those who subscribed, and say to which subscription.
    let listen = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta(json!({})) });
    let id = mcp.ask("subscriptions/listen", listen).await;
    mcp.notified("notifications/subscriptions/acknowledged").await;
    mcp.result("tools/call", json!({ "name": "kit__grow", "arguments": {}, "_meta": meta(json!({})) })).await;
    supervisor.cli(&["plugin", "refresh", "kit"]).await;
    let news = mcp.notified("notifications/tools/list_changed").await;
    assert_eq!(news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    let (status, said) = mcp.close().await;
    assert!(status.success(), "{said}");
}

// Promises: MCP-9
#[tokio::test]
async fn what_a_tool_says_is_guarded_and_errors_say_why() {
    let supervisor = supervisor().await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    mcp.initialize("2025-06-18").await;
    let hostile = mcp.call("kit__hostile", json!({})).await;
    let said = text(&hostile);
    assert_eq!(said.matches("[/plugin_output]").count(), 1, "{said}");
    assert!(said.ends_with("[/plugin_output]") && !said.contains("<|im_start|>"), "{said}");

    for (name, arguments, reason, words) in [
        ("kit__test_error_handling", json!({}), "tool_error", "intentionally returns an error"),
        ("kit__echo", json!({}), "bad_arguments", "text"),
        ("kit__echo", json!({ "text": "x", "other": 1 }), "bad_arguments", "other"),
        ("kit__echo", json!({ "text": "x".repeat(3 << 20) }), "", "more than the supervisor takes"),
    ] {
        let answer = mcp.call(name, arguments).await;
        assert_eq!(answer["isError"], true, "{answer}");
        assert!(text(&answer).contains(words), "{name}: {answer}");
        if !reason.is_empty() {
            assert_eq!(answer["_meta"]["talon/answer"]["reason"], reason, "{answer}");
        }
    }
    // What is for people is not there, and neither is what never was.
    for name in ["kit__for_people", "kit__nothing", "nobody__x", ""] {
        let id = mcp.ask("tools/call", json!({ "name": name })).await;
        let answer = mcp.answer(id).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    mcp.close().await;
}

// Promises: MCP-11
#[tokio::test]
async fn patterns_narrow_what_is_offered() {
    let supervisor = supervisor().await;
    let args = ["--allow", "kit__test_*", "--allow", "kit__echo", "--deny", "kit__test_simple_text"];
    let mut mcp = Mcp::of(&supervisor, &args);
    mcp.initialize("2025-11-25").await;
    let names = mcp.tool_names().await;
    assert_eq!(
        names,
        [
            "kit__echo",
            "kit__test_audio_content",
            "kit__test_embedded_resource",
            "kit__test_error_handling",
            "kit__test_image_content",
            "kit__test_logging_tool",
            "kit__test_multiple_content_types",
            "kit__test_streaming_elicitation",
            "kit__test_tool_with_logging",
            "kit__test_tool_with_progress"
        ]
    );
    let id = mcp.ask("tools/call", json!({ "name": "kit__destroy" })).await;
    assert_eq!(mcp.answer(id).await["error"]["code"], -32602);
    mcp.close().await;

    let refused = supervisor.cli(&["mcp", "--allow", "Kit__*"]).await;
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Kit__*"));
}

#[tokio::test]
async fn progress_reaches_who_asked_for_it() {
    let supervisor = supervisor().await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    mcp.initialize("2025-11-25").await;
    let call = json!({ "name": "kit__test_tool_with_progress", "_meta": { "progressToken": "mine" } });
    let id = mcp.ask("tools/call", call).await;
    let first = mcp.notified("notifications/progress").await;
    assert_eq!(
        (&first["params"]["progressToken"], &first["params"]["total"]),
        (&json!("mine"), &json!(100.0))
    );
    assert_eq!(mcp.answer(id).await["result"]["isError"], false);
    mcp.close().await;
}

#[tokio::test]
async fn a_call_that_is_cancelled_reaches_nobody_and_nothing_else_notices() {
    let supervisor = supervisor().await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    mcp.initialize("2025-11-25").await;
    let id = mcp.ask("tools/call", json!({ "name": "kit__slow" })).await;
    supervisor.client.wait_in_flight("kit").await;
    mcp.notify("notifications/cancelled", json!({ "requestId": id, "reason": "enough" })).await;
    let idle = async |client: &talon_tests::Client| client.plugin("kit").await.calls_in_flight == 0;
    supervisor.client.wait_until("an end of the call", idle).await;
    assert_eq!(mcp.call("kit__test_simple_text", json!({})).await["isError"], false);

    // So does one whose client is gone.
    mcp.ask("tools/call", json!({ "name": "kit__slow" })).await;
    supervisor.client.wait_in_flight("kit").await;
    mcp.kill().await;
    supervisor.client.wait_until("an end of the call", idle).await;
}

#[tokio::test]
async fn what_is_no_message_is_answered_or_left_and_the_session_goes_on() {
    let supervisor = supervisor().await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    mcp.initialize("2025-11-25").await;
    for line in [
        "",
        "not JSON",
        "{}",
        "[]",
        "{\"jsonrpc\":\"2.0\"}",
        "\u{1b}[2J",
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":1}",
    ] {
        mcp.line(line).await;
    }
    mcp.line(&format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000))).await;
    mcp.line(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":\"{}\"}}",
        "x".repeat(17 << 20)
    ))
    .await;
    let id = mcp.ask("no/such/method", json!({})).await;
    assert_eq!(mcp.answer(id).await["error"]["code"], -32601);
    let id = mcp.ask("tools/list", json!({ "cursor": "17" })).await;
    assert_eq!(mcp.answer(id).await["error"]["code"], -32602);
    assert_eq!(mcp.call("kit__test_simple_text", json!({})).await["isError"], false);
    let (status, said) = mcp.close().await;
    assert!(status.success(), "{said}");
}

#[tokio::test]
async fn a_flood_of_calls_is_refused_beyond_what_may_run_and_every_one_is_answered() {
    let supervisor = supervisor().await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    mcp.initialize("2025-11-25").await;
    mcp.tool_names().await;
    let mut ids = Vec::new();
    for _ in 0..100 {
        ids.push(mcp.ask("tools/call", json!({ "name": "kit__test_tool_with_progress" })).await);
    }
    let mut refused = 0;
    for id in ids {
        let answer = mcp.answer(id).await;
        refused += usize::from(
            answer["result"]["content"][0]["text"].as_str().unwrap().contains("calls of this client"),
        );
    }
    assert!(refused > 0, "nothing bounded them");
    assert_eq!(mcp.call("kit__test_simple_text", json!({})).await["isError"], false);
    mcp.close().await;
}

#[tokio::test]
async fn tools_that_come_and_go_are_told_and_so_is_a_supervisor_that_went() {
    let supervisor = supervisor().await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    mcp.initialize("2025-11-25").await;
    assert!(!mcp.tool_names().await.contains(&"kit__grown_0".to_owned()));
    mcp.call("kit__grow", json!({})).await;
    mcp.until_tools(|names| names.contains(&"kit__grown_0".to_owned())).await;
    supervisor.client.stop("kit").await.unwrap();
    mcp.until_tools(|names| !names.iter().any(|name| name.starts_with("kit__"))).await;
    supervisor.client.start("kit").await.unwrap();
    mcp.until_tools(|names| names.contains(&"kit__echo".to_owned())).await;

    let stopped = supervisor.stop().await;
    let answer = mcp.call("kit__test_simple_text", json!({})).await;
    assert_eq!(answer["isError"], true);
    assert!(text(&answer).contains("supervisor"), "{answer}");
    // Another supervisor on the same socket is found; it knows its own plugin.
    let again = Builder::on_leftovers(stopped.left)
        .plugin("kit2", &program("talon-test-tools"), &[], "")
        .start()
        .await;
    mcp.until_tools(|names| names.contains(&"kit2__echo".to_owned())).await;
    assert_eq!(mcp.call("kit2__test_simple_text", json!({})).await["isError"], false);
    mcp.close().await;
    again.stop().await;
}

/// A plugin that makes the end of its supervisor take its whole grace period.
fn with_slow_end(builder: Builder) -> Builder {
    let more = "grace_period: 2s";
    builder.plugin("kit", &program("talon-test-tools"), &[], "").misbehave(&["--ignore-signals"], more)
}

// Promises: MCP-27
#[tokio::test]
async fn a_client_that_connects_for_each_call_finds_its_tools() {
    let builder = with_slow_end(Builder::new());
    let (config, _socket) = builder.write_config();
    let words = ["--config", config.to_str().unwrap(), "mcp", "--own"];
    for _ in 0..3 {
        // The supervisor of the last connection is still stopping its plugins.
        let mut mcp = Mcp::with(&words, &[]);
        mcp.initialize("2025-11-25").await;
        assert_eq!(mcp.call("kit__test_simple_text", json!({})).await["isError"], false);
        assert!(mcp.tool_names().await.contains(&"kit__echo".to_owned()));
        mcp.kill().await;
    }
    let mut last = Mcp::with(&words, &[]);
    last.initialize("2025-11-25").await;
    assert!(last.tool_names().await.contains(&"kit__echo".to_owned()));
    let (status, said) = last.close().await;
    assert!(status.success(), "{said}");
}

// Promises: MCP-27
#[tokio::test]
async fn a_client_keeps_its_list_while_a_supervisor_succeeds_another() {
    let supervisor = with_slow_end(Builder::new()).start().await;
    let mut mcp = Mcp::of(&supervisor, &[]);
    mcp.initialize("2025-11-25").await;
    let before = mcp.tool_names().await;
    let pid = supervisor.pid();
    let ended = tokio::spawn(supervisor.end(nix::sys::signal::Signal::SIGTERM));
    while alive(pid) && !ended.is_finished() {
        assert_eq!(mcp.tool_names().await, before);
    }
    let call = mcp.ask("tools/call", json!({ "name": "kit__test_simple_text" })).await;
    let left = ended.await.unwrap().left;
    assert_eq!(mcp.tool_names().await, before);
    let again = with_slow_end(Builder::on_leftovers(left)).start().await;
    assert_eq!(mcp.answer(call).await["result"]["isError"], false);
    assert_eq!(mcp.tool_names().await, before);
    mcp.close().await;
    again.stop().await;
}

#[tokio::test]
async fn without_a_supervisor_both_ways_are_named() {
    let scratch = talon_tests::Scratch::new();
    let config = scratch.write("talon.yaml", &format!("runtime_dir: {}/run\n", scratch.path().display()));
    let output = cli_with(&["--config", config.to_str().unwrap(), "mcp"], &[]).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("talon serve") && said.contains("--own"), "{said}");
    assert!(output.stdout.is_empty());
}

// Promises: MCP-45
#[tokio::test]
async fn an_editor_may_start_before_the_supervisor_does() {
    let scratch = talon_tests::Scratch::new();
    let socket = scratch.path().join("run/host.sock");
    let socket = socket.to_str().unwrap();
    // Where none ever was, it says at once what to do, and so it does when told.
    for more in [&["--socket", socket, "mcp"][..], &["--socket", socket, "mcp", "--wait", "0s"]] {
        let output = cli_with(more, &[]).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{said}");
        assert!(
            said.contains("talon serve") && said.contains("--wait") && !said.contains("waiting"),
            "{said}"
        );
    }
    let mut mcp = Mcp::with(&["--socket", socket, "mcp", "--wait", "60s"], &[]);
    let id = mcp
        .ask(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } }),
        )
        .await;
    let builder = Builder::new().runtime_dir(scratch.path().join("run")).plugin(
        "kit",
        &program("talon-test-tools"),
        &[],
        "",
    );
    let supervisor = builder.start().await;
    assert_eq!(supervisor.socket().to_str(), Some(socket));
    assert_eq!(mcp.answer(id).await["result"]["serverInfo"]["name"], "talon");
    mcp.notify("notifications/initialized", json!({})).await;
    assert!(mcp.tool_names().await.contains(&"kit__echo".to_owned()));
    mcp.close().await;
    supervisor.stop().await;
}

// Promises: MCP-12
#[tokio::test]
async fn a_supervisor_of_its_own_lives_as_long_as_its_client() {
    let builder = Builder::new().plugin("kit", &program("talon-test-tools"), &[], "");
    let (config, socket) = builder.write_config();
    let config = config.to_str().unwrap().to_owned();
    for kill in [false, true] {
        let mut mcp = Mcp::with(&["--config", &config, "mcp", "--own"], &[]);
        mcp.initialize("2025-11-25").await;
        assert!(mcp.tool_names().await.contains(&"kit__echo".to_owned()));
        assert_eq!(mcp.call("kit__test_simple_text", json!({})).await["isError"], false);
        let client = talon_tests::Client::connect(&socket).await.unwrap();
        let pid = client.status().await.pid;
        // A second window finds it.
        let mut second = Mcp::with(&["--config", &config, "mcp", "--own"], &[]);
        second.initialize("2025-11-25").await;
        assert!(second.tool_names().await.contains(&"kit__echo".to_owned()));
        assert_eq!(client.status().await.pid, pid);
        second.kill().await;
        if kill {
            mcp.kill().await;
        } else {
            let (status, said) = mcp.close().await;
            assert!(status.success(), "{said}");
        }
        talon_tests::until("the supervisor's end", || !alive(pid)).await;
    }
}

// Promises: MCP-14
#[tokio::test]
async fn who_was_first_in_a_directory_for_all_gets_no_client() {
    // Only root can be another user, too.
    if !is_root() {
        return skip("who_was_first_in_a_directory_for_all_gets_no_client", "only root can start a stranger");
    }
    let planted = tempfile::Builder::new().prefix("talon-mcp-").tempdir_in("/tmp").unwrap();
    std::os::unix::fs::chown(planted.path(), Some(54_321), Some(54_321)).unwrap();
    let socket = planted.path().join("host.sock");
    let listens = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(8); \
                   print('there', flush=True); sys.stdin.read()";
    let mut stranger = std::process::Command::new("python3")
        .args(["-c", listens])
        .arg(&socket)
        .uid(54_321)
        .gid(54_321)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is here");
    let mut there = String::new();
    BufReader::new(stranger.stdout.take().unwrap()).read_line(&mut there).unwrap();
    assert_eq!(there, "there\n");

    let name = socket.to_str().unwrap();
    let cli = cli(&["--socket", name, "status"]).await;
    assert_eq!(cli.status.code(), Some(7), "{cli:?}");
    let mut mcp = std::process::Command::new(program("talon-mcp"))
        .args(["--socket", name])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It is not the end of its input that ends it.
    let _held = mcp.stdin.take();
    let mcp = mcp.wait_with_output().unwrap();
    assert_eq!(mcp.status.code(), Some(1), "{mcp:?}");
    for said in [&cli.stderr, &mcp.stderr] {
        let said = String::from_utf8_lossy(said);
        assert!(said.contains("uid 54321 listens on") && said.contains("--socket"), "{said}");
    }
    drop(stranger.stdin.take());
    stranger.wait().unwrap();
}
