//! Questions of a server to the user behind a call. The server is made with the official Python library, and asks by
//! separate requests before 2026-07-28, by results from then on.

use serde_json::{Value, json};
use talon_proto::host::{ExecuteRequest, ExecuteResponse, Outcome};
use talon_proto::plugin::InputResponse;

use talon_tests::{
    Builder, Mcp, McpOverHttp, Supervisor, Terminal, mcp_packages, meta, program, repository,
    without_mcp_packages,
};
use tokio::process::Command;

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// A supervisor with the server as the plugin `fly`.
async fn serving(revision: &str, config: &str, more: &str) -> Supervisor {
    serving_on(Builder::new(), revision, config, more).await
}

async fn serving_on(builder: Builder, revision: &str, config: &str, more: &str) -> Supervisor {
    let script =
        builder.scratch().install(&repository().join("tests/mcp/asking_server.py"), "server/asking.py");
    let reads = script.parent().expect("a file is in a directory").display().to_string();
    let packages = mcp_packages().canonicalize().expect("it is there");
    let entry = format!(
        "dialect: mcp\nstart_timeout: 120s\nconfig: {{ protocol: \"{revision}\"{config} }}\n\
         sandbox: {{ fs: {{ read: [{reads}], execute: [{}] }} }}\n{more}",
        packages.display()
    );
    let script = script.display().to_string();
    let supervisor = builder.plugin("fly", &packages.join("bin/python"), &[&script], &entry).start().await;
    let plugin = supervisor.client.plugin("fly").await;
    assert_eq!(plugin.state, "ready", "{}\n{:#?}", plugin.reason, supervisor.client.logs("fly").await);
    supervisor
}

fn request(action: &str, arguments: &Value, answer: Option<InputResponse>) -> ExecuteRequest {
    ExecuteRequest {
        plugin: "fly".to_owned(),
        action: action.to_owned(),
        arguments_json: arguments.to_string(),
        takes_input_requests: true,
        input_response: answer,
        ..ExecuteRequest::default()
    }
}

async fn execute(supervisor: &Supervisor, request: ExecuteRequest) -> ExecuteResponse {
    supervisor.client.clone().raw().execute(request).await.expect("it is answered").into_inner()
}

fn answer(question: &ExecuteResponse, action: &str, content: &Value) -> Option<InputResponse> {
    let id = question.input_request.as_ref().unwrap_or_else(|| panic!("a question: {question:?}")).id.clone();
    let content_json = if action == "accept" { content.to_string() } else { String::new() };
    Some(InputResponse { id, action: action.to_owned(), content_json })
}

// Promises: MCP-41, MCP-42
#[tokio::test]
async fn a_caller_answers_a_question_with_another_call() {
    if without_mcp_packages("a_caller_answers_a_question_with_another_call") {
        return;
    }
    for revision in REVISIONS {
        let supervisor = serving(revision, "", "").await;
        let flight = json!({ "flight": "T1" });
        let asked = execute(&supervisor, request("book", &flight, None)).await;
        assert_eq!(
            (asked.outcome(), asked.content.as_str()),
            (Outcome::Ok, "Which seat on T1?"),
            "{asked:?}"
        );
        let schema: Value = serde_json::from_str(&asked.input_request.as_ref().unwrap().schema).unwrap();
        assert_eq!(schema["properties"]["seat"]["enum"], json!(["window", "aisle"]), "{schema}");

        // What does not fit leaves it open, and so does who guesses.
        let wrong = answer(&asked, "accept", &json!({ "seat": "wing" }));
        let refused = execute(&supervisor, request("book", &flight, wrong)).await;
        assert!(refused.error.contains("one of window, aisle"), "{refused:?}");
        let guess =
            InputResponse { id: "0".repeat(32), action: "decline".to_owned(), content_json: String::new() };
        let refused = execute(&supervisor, request("book", &flight, Some(guess))).await;
        assert!(refused.error.contains("not open any more"), "{refused:?}");
        let seat = answer(&asked, "accept", &json!({ "seat": "aisle", "bags": 2 }));
        let booked = execute(&supervisor, request("book", &flight, seat.clone())).await;
        assert_eq!(booked.content, r#"T1: {"seat":"aisle","bags":2}"#, "{booked:?}");
        let again = execute(&supervisor, request("book", &flight, seat)).await;
        assert!(again.error.contains("not open any more"), "{again:?}");

        for action in ["decline", "cancel"] {
            let asked = execute(&supervisor, request("book", &flight, None)).await;
            let said = answer(&asked, action, &json!(null));
            let said = execute(&supervisor, request("book", &flight, said)).await;
            assert_eq!(said.content, format!("T1: {action}"), "{said:?}");
        }
        supervisor.stop().await;
    }
}

#[tokio::test]
async fn several_questions_are_asked_one_after_the_other() {
    if without_mcp_packages("several_questions_are_asked_one_after_the_other") {
        return;
    }
    for revision in REVISIONS {
        let supervisor = serving(revision, "", "").await;
        let flight = json!({ "flight": "T1" });
        let mut said = execute(&supervisor, request("book_for", &flight, None)).await;
        let mut asked = Vec::new();
        while said.input_request.is_some() {
            let content = if said.content.starts_with("Who") {
                json!({"name": "Ada"})
            } else {
                json!({"seat": "aisle"})
            };
            asked.push(said.content.clone());
            said =
                execute(&supervisor, request("book_for", &flight, answer(&said, "accept", &content))).await;
        }
        asked.sort();
        assert_eq!(asked, ["Which seat on T1?", "Who flies on T1?"], "{revision}");
        assert_eq!(said.content, r#"T1: {"name":"Ada"} {"seat":"aisle","bags":0}"#, "{said:?}");
        supervisor.stop().await;
    }
}

// Promises: MCP-41
#[tokio::test]
async fn a_caller_that_cannot_ask_learns_it_at_once() {
    if without_mcp_packages("a_caller_that_cannot_ask_learns_it_at_once") {
        return;
    }
    for (revision, more) in [(REVISIONS[0], ""), (REVISIONS[1], ""), (REVISIONS[0], "instances: 2")] {
        let supervisor = serving(revision, "", more).await;
        let call = ExecuteRequest {
            takes_input_requests: !more.is_empty(),
            ..request("book", &json!({ "flight": "T1" }), None)
        };
        let said = execute(&supervisor, call).await;
        assert_eq!(said.input_request, None, "{said:?}");
        if revision == REVISIONS[0] {
            assert!(
                said.content.starts_with("T1: decline\n\n[The tool asked its user something"),
                "{said:?}"
            );
        } else {
            assert!(said.error.contains("which this caller cannot give"), "{said:?}");
        }
        supervisor.stop().await;
    }
}

/// `initialize` of a client with or without forms.
async fn introduce(mcp: &mut Mcp, capabilities: Value) {
    let about = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": { "name": "test", "version": "1" }
    });
    mcp.result("initialize", about).await;
    mcp.notify("notifications/initialized", json!({})).await;
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("a text: {result}"))
}

// Promises: MCP-43
#[tokio::test]
async fn a_client_before_2026_is_asked_while_its_call_waits() {
    if without_mcp_packages("a_client_before_2026_is_asked_while_its_call_waits") {
        return;
    }
    for revision in REVISIONS {
        let supervisor = serving(revision, "", "").await;
        let mut mcp = Mcp::of(&supervisor, &[]);
        introduce(&mut mcp, json!({ "elicitation": {} })).await;
        let params = json!({ "name": "fly__book", "arguments": { "flight": "T1" } });
        for (result, says) in [
            (json!({"action": "accept", "content": {"seat": "window"}}), r#"T1: {"seat":"window","bags":0}"#),
            (json!({"action": "accept", "content": {"seat": "wing"}}), "T1: cancel"),
            (json!({"action": "decline"}), "T1: decline"),
        ] {
            let call = mcp.ask("tools/call", params.clone()).await;
            let asked = mcp.notified("elicitation/create").await;
            let shown = asked["params"]["message"].as_str().unwrap();
            assert!(
                shown.starts_with("The plugin fly asks") && shown.ends_with("\n> Which seat on T1?"),
                "{shown}"
            );
            assert_eq!(asked["params"]["requestedSchema"]["required"], json!(["seat"]), "{asked}");
            mcp.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).await;
            let answer = mcp.answer(call).await;
            assert!(text(&answer["result"]).contains(says), "{answer}");
        }
        // Whatever a plugin writes, each line of it is its own.
        let call = mcp.ask("tools/call", json!({ "name": "fly__hostile" })).await;
        let asked = mcp.notified("elicitation/create").await;
        let shown = asked["params"]["message"].as_str().unwrap();
        assert!(shown.lines().skip(1).all(|line| line.starts_with('>')), "{shown}");
        assert!(!shown.contains("<|im_start|>"), "{shown}");
        let error = json!({ "code": -32603, "message": "the window is closed" });
        mcp.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
        assert!(text(&mcp.answer(call).await["result"]).contains("cancel"));
        mcp.close().await;

        let mut mcp = Mcp::of(&supervisor, &[]);
        introduce(&mut mcp, json!({})).await;
        let answer = mcp.call("fly__book", json!({ "flight": "T1" })).await;
        assert!(text(&answer).contains("caller cannot"), "{answer}");
        mcp.close().await;
        supervisor.stop().await;
    }
}

// Promises: MCP-43
#[tokio::test]
async fn a_client_of_2026_gets_a_question_as_a_result() {
    if without_mcp_packages("a_client_of_2026_gets_a_question_as_a_result") {
        return;
    }
    for revision in REVISIONS {
        let supervisor = serving(revision, "", "").await;
        let mut mcp = Mcp::of(&supervisor, &[]);
        let asks = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } } });
        let call = |more: Value| {
            let mut params =
                json!({ "name": "fly__book", "arguments": { "flight": "T1" }, "_meta": meta(asks.clone()) });
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            params
        };
        let asked = mcp.result("tools/call", call(json!({}))).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let request = &asked["inputRequests"]["question"];
        assert_eq!(request["method"], "elicitation/create", "{asked}");
        assert!(request["params"]["message"].as_str().unwrap().ends_with("> Which seat on T1?"), "{asked}");
        let accepted = json!({ "action": "accept", "content": { "seat": "aisle" } });
        let again =
            json!({ "requestState": asked["requestState"], "inputResponses": { "question": accepted } });
        let booked = mcp.result("tools/call", call(again)).await;
        assert!(text(&booked).contains(r#"T1: {"seat":"aisle","bags":0}"#), "{booked}");
        mcp.close().await;
        supervisor.stop().await;
    }
}

// Promises: MCP-41
#[tokio::test]
async fn an_address_to_open_is_declined() {
    if without_mcp_packages("an_address_to_open_is_declined") {
        return;
    }
    let supervisor = serving(REVISIONS[0], "", "").await;
    let said = execute(&supervisor, request("open_page", &json!({}), None)).await;
    // The library asks nothing of a client that has no such mode, or is declined.
    assert!(
        said.input_request.is_none()
            && (said.content.starts_with("decline\n\n[The tool asked its user something")
                && said.content.contains("wants the user to open an address")
                || !said.error.is_empty()),
        "{said:?}"
    );
    supervisor.stop().await;
}

// Promises: MCP-36
#[tokio::test]
async fn a_server_of_either_revision_gets_the_roots_that_its_operator_grants() {
    if without_mcp_packages("a_server_of_either_revision_gets_the_roots_that_its_operator_grants") {
        return;
    }
    for revision in REVISIONS {
        let supervisor = serving(revision, ", roots: granted", "").await;
        let said = supervisor.client.call("fly", "roots", &[]).await;
        assert!(said.content.starts_with("file:///") && said.content.contains("/server"), "{said:?}");
        supervisor.stop().await;
        let supervisor = serving(revision, "", "").await;
        let said = supervisor.client.call("fly", "roots", &[]).await;
        assert_eq!(said.outcome(), Outcome::ToolError, "{said:?}");
        supervisor.stop().await;
    }
}

// Promises: MCP-44
#[tokio::test]
async fn a_person_at_a_terminal_is_asked_by_talon_call() {
    if without_mcp_packages("a_person_at_a_terminal_is_asked_by_talon_call") {
        return;
    }
    let supervisor = serving(REVISIONS[1], "", "").await;
    let call = |action: &str| {
        let mut command = std::process::Command::new(program("talon"));
        command.arg("--socket").arg(supervisor.socket()).args(["call", action, "flight=T1"]);
        command
    };
    let mut terminal = Terminal::start(&mut call("fly.book"), 100, 24);
    let screen = terminal.wait_text("Answer it? [Y/n]").await;
    assert!(screen.contains("plugin fly asks, in its own words:\n> Which seat on T1?"), "{screen}");
    terminal.press("y\r");
    terminal.wait_text("(one of window, aisle):").await;
    terminal.press("wing\r");
    terminal.wait_text("It has to be one of window, aisle.").await;
    terminal.press("aisle\r");
    terminal.wait_text("(an integer; empty: 0):").await;
    terminal.press("\r");
    terminal.wait_text(r#"T1: {"seat":"aisle","bags":0}"#).await;
    assert!(terminal.ended().await.success());

    let mut terminal = Terminal::start(&mut call("fly.book"), 100, 24);
    terminal.wait_text("Answer it? [Y/n]").await;
    terminal.press("n\r");
    terminal.wait_text("T1: decline").await;
    assert!(terminal.ended().await.success());

    // Without a terminal no person can answer.
    let said = supervisor.cli(&["call", "fly.book", "flight=T1"]).await;
    assert!(String::from_utf8_lossy(&said.stdout).contains("this caller cannot give"), "{said:?}");
    supervisor.stop().await;
}

// Promises: MCP-51
#[tokio::test]
async fn a_form_that_asks_for_a_secret_is_declined_and_the_answer_says_why() {
    if without_mcp_packages("a_form_that_asks_for_a_secret_is_declined_and_the_answer_says_why") {
        return;
    }
    for revision in REVISIONS {
        let supervisor = serving(revision, "", "").await;
        let said = execute(&supervisor, request("log_in", &json!({}), None)).await;
        assert_eq!(said.input_request, None, "{said:?}");
        let why = "declined at once: the field \"password\" asks for a secret";
        assert!(said.content.starts_with("decline") && said.content.contains(why), "{said:?}");
        supervisor.stop().await;
    }
}

// Promises: MCP-43
#[tokio::test]
async fn a_client_over_http_is_asked_as_well() {
    if without_mcp_packages("a_client_over_http_is_asked_as_well") {
        return;
    }
    let supervisor = serving(REVISIONS[0], "", "").await;
    let served = McpOverHttp::start(&supervisor).await;
    let client = repository().join("tests/mcp/http_asking_client.py");
    let output = Command::new(mcp_packages().join("bin/python"))
        .arg(client)
        .args([&served.url(), &served.token])
        .output()
        .await
        .expect("python starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.ends_with("both were asked\n"), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("legacy 2025-11-25") && said.contains("auto 2026-07-28"), "{said}");
    supervisor.stop().await;
}
