//! Questions of an MCP server to the person behind the agent's call: at the terminal, over the API, over a restart of
//! the agent, and where no person can answer. The server is made with the official Python library.

use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use talon_proto::agent::agent_client::AgentClient;
use talon_proto::agent::{Approval, AskRequest, AttachRequest, DecideRequest, ListApprovalsRequest};
use talon_tests::ask::{ask, with_agent};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::turn_chunks::{final_answer, next_chunk, pending_approval};
use talon_tests::{
    Builder, Supervisor, Terminal, dial, mcp_packages, program, repository, without_mcp_packages,
};
use tonic::transport::Channel;

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// A model that calls `fly.book` (or what it is asked to call), and repeats the last result.
fn books(question: &Value) -> ScriptedReply {
    let messages = question["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    if last["role"] == "tool" {
        return ScriptedReply::Text(last["content"].as_str().unwrap_or_default().to_owned());
    }
    let tool = match last["content"].as_str().unwrap_or_default() {
        text if text.contains("log in") => ("fly__log_in", json!({})),
        _ => ("fly__book", json!({ "flight": "T1" })),
    };
    ScriptedReply::ToolCalls(vec![(tool.0.to_owned(), tool.1)])
}

struct Setting {
    supervisor: Supervisor,
    provider: Provider,
}

/// A supervisor with an agent and the server as the plugin `fly`.
async fn start(revision: &str, confirm: &str) -> Setting {
    let provider = Provider::responding(books).await;
    let builder = with_agent(Builder::new(), &provider, &format!("  confirm: {{ default: {confirm} }}"), "");
    let script =
        builder.scratch().install(&repository().join("tests/mcp/asking_server.py"), "server/asking.py");
    let reads = script.parent().expect("a file is in a directory").display().to_string();
    let packages = mcp_packages().canonicalize().expect("it is there");
    let entry = format!(
        "dialect: mcp\nstart_timeout: 120s\nconfig: {{ protocol: \"{revision}\" }}\n\
         sandbox: {{ fs: {{ read: [{reads}], execute: [{}] }} }}",
        packages.display()
    );
    let script = script.display().to_string();
    let supervisor = builder.plugin("fly", &packages.join("bin/python"), &[&script], &entry).start().await;
    let plugin = supervisor.client.plugin("fly").await;
    assert_eq!(plugin.state, "ready", "{}\n{:#?}", plugin.reason, supervisor.client.logs("fly").await);
    Setting { supervisor, provider }
}

impl Setting {
    async fn agent(&self) -> AgentClient<Channel> {
        AgentClient::new(dial(&self.supervisor.agent_socket()).await.expect("it listens"))
    }
}

fn accept(approval: &Approval, answer: &Value) -> DecideRequest {
    let (id, answer) = (approval.id.clone(), answer.to_string());
    DecideRequest { id, approve: true, answer, ..DecideRequest::default() }
}

// Promises: AGENT-120
#[tokio::test(flavor = "multi_thread")]
async fn a_person_at_the_terminal_is_asked_what_the_server_asks() {
    if without_mcp_packages("a_person_at_the_terminal_is_asked_what_the_server_asks") {
        return;
    }
    for revision in REVISIONS {
        let Setting { supervisor, provider: _provider } = start(revision, "never").await;
        let talon = |columns: u16| {
            let mut command = Command::new(program("talon"));
            command
                .arg("--socket")
                .arg(supervisor.socket())
                .args(["ask", "Book a seat"])
                .env("NO_COLOR", "1");
            Terminal::start(&mut command, columns, 40)
        };
        let mut terminal = talon(100);
        let screen = terminal.wait_text("[Y/n/later]").await;
        assert!(screen.contains("of the plugin fly, in its own words"), "{screen}");
        assert!(screen.contains("\n> Which seat on T1?"), "{screen}");
        assert!(screen.contains("> seat (one of window, aisle)"), "{screen}");
        terminal.press("y\r");
        terminal.wait_text("(one of window, aisle):").await;
        terminal.press("wing\r");
        terminal.wait_text("It has to be one of window, aisle.").await;
        terminal.press("aisle\r");
        terminal.wait_text("(an integer; empty: 0):").await;
        terminal.press("\r");
        terminal.wait_text(r#"{"seat":"aisle","bags":0}"#).await;
        assert!(terminal.ended().await.success());

        let mut terminal = talon(80);
        terminal.wait_text("[Y/n/later]").await;
        terminal.press("n\r");
        terminal.wait_text("T1: decline").await;
        assert!(terminal.ended().await.success());
        supervisor.stop().await;
    }
}

// Promises: AGENT-120
#[tokio::test(flavor = "multi_thread")]
async fn where_no_person_can_answer_it_is_declined_and_said() {
    if without_mcp_packages("where_no_person_can_answer_it_is_declined_and_said") {
        return;
    }
    for (revision, says) in [(REVISIONS[0], "T1: decline"), (REVISIONS[1], "which this caller cannot give")] {
        let Setting { supervisor, provider: _provider } = start(revision, "never").await;
        let asked = ask(&supervisor, "Book a seat", &[]).await;
        assert_eq!(asked.code, Some(0), "{asked:?}");
        assert!(asked.text("text").contains(says), "{asked:?}");
        supervisor.stop().await;
    }
}

// Promises: AGENT-120
#[tokio::test(flavor = "multi_thread")]
async fn a_program_of_a_person_answers_over_the_api_and_no_secret_is_asked_for() {
    if without_mcp_packages("a_program_of_a_person_answers_over_the_api_and_no_secret_is_asked_for") {
        return;
    }
    let setting = start(REVISIONS[1], "never").await;
    let mut agent = setting.agent().await;
    let request =
        |text: &str| AskRequest { text: text.to_owned(), can_answer: true, ..AskRequest::default() };
    let mut turn = agent.ask(request("Book a seat")).await.expect("a turn").into_inner();
    let asked = next_chunk(&mut turn, pending_approval).await;
    assert_eq!((asked.plugin.as_str(), asked.question.as_str()), ("fly", "Which seat on T1?"));
    let form: Value = serde_json::from_str(&asked.form).expect("a form is JSON");
    assert_eq!(form["required"], json!(["seat"]), "{form}");
    let wrong = agent.decide(accept(&asked, &json!({ "seat": "wing" }))).await.expect_err("it does not fit");
    assert!(
        wrong.message().contains("still open") && wrong.message().contains("one of window, aisle"),
        "{wrong}"
    );
    let decided =
        agent.decide(accept(&asked, &json!({ "seat": "window" }))).await.expect("it fits").into_inner();
    assert_eq!(decided.state, "answered");
    let said = next_chunk(&mut turn, final_answer).await;
    assert!(said.contains(r#"T1: {"seat":"window","bags":0}"#), "{said}");

    let mut turn = agent.ask(request("Now log in")).await.expect("a turn").into_inner();
    let said = next_chunk(&mut turn, final_answer).await;
    assert!(said.contains("asks for a secret"), "{said}");
    setting.supervisor.stop().await;
}

// Promises: AGENT-121
#[tokio::test(flavor = "multi_thread")]
async fn a_question_outlives_the_agent_and_its_call_is_continued_once() {
    if without_mcp_packages("a_question_outlives_the_agent_and_its_call_is_continued_once") {
        return;
    }
    // The call itself needs an approval, which is asked for once.
    let setting = start(REVISIONS[0], "always").await;
    let mut agent = setting.agent().await;
    let request = AskRequest { text: "Book a seat".to_owned(), can_answer: true, ..AskRequest::default() };
    let mut turn = agent.ask(request).await.expect("a turn").into_inner();
    let call = next_chunk(&mut turn, pending_approval).await;
    assert!(call.question.is_empty(), "{call:?}");
    agent
        .decide(DecideRequest { id: call.id.clone(), approve: true, ..DecideRequest::default() })
        .await
        .expect("it runs");
    let asked =
        next_chunk(&mut turn, |kind| pending_approval(kind).filter(|approval| !approval.question.is_empty()))
            .await;
    let before = setting.supervisor.agent_status().await;
    kill(Pid::from_raw(before.pid.cast_signed()), Signal::SIGKILL).expect("it runs");
    setting
        .supervisor
        .wait_agent("another process", |agent| agent.state == "serving" && agent.pid != before.pid)
        .await;

    let mut agent = setting.agent().await;
    let listed = agent.list_approvals(ListApprovalsRequest::default()).await.expect("a list").into_inner();
    assert_eq!(listed.approvals.iter().map(|one| &one.id).collect::<Vec<_>>(), [&asked.id]);
    let session_id = asked.session_id.clone();
    let mut turn = agent.attach(AttachRequest { session_id }).await.expect("it is continued").into_inner();
    agent.decide(accept(&asked, &json!({ "seat": "aisle" }))).await.expect("it fits");
    let said = next_chunk(&mut turn, final_answer).await;
    assert!(said.contains(r#"T1: {"seat":"aisle","bags":0}"#), "{said}");
    // One answer with the call, and one with what came of it.
    assert_eq!(setting.provider.bodies().len(), 2);
    setting.supervisor.stop().await;
}
