//! Plans of sessions: shown, changed and approved by a person at a terminal, in a script and over the API, before
//! anything is done; and over a restart of the agent.

use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use talon_proto::agent::agent_client::AgentClient;
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{
    AskRequest, AttachRequest, DecideRequest, GetSessionRequest, ListApprovalsRequest, PlanStep,
    SetPlanRequest,
};
use talon_tests::ask::{AskResult, ask, wait_session_text, with_agent};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::turn_chunks::{final_answer, next_chunk, pending_approval};
use talon_tests::{Builder, Supervisor, Terminal, dial, example, program};
use tonic::Code;
use tonic::transport::Channel;

/// What a step of a plan begins with that a note is made for.
const NOTE: &str = "note ";

fn add(text: &str) -> (String, Value) {
    ("notes__add".to_owned(), json!({ "text": text }))
}

/// The notes that the steps of a plan ask for which are not done.
fn notes(plan: &str) -> Vec<(String, Value)> {
    let step = |line: &str| line.split_once(". ").and_then(|(_, step)| step.strip_prefix(NOTE).map(add));
    plan.lines().filter_map(step).collect()
}

/// A model that notes too early, writes a plan then, and carries out the plan that it is told.
fn shopper(question: &Value) -> ScriptedReply {
    let messages = question["messages"].as_array().cloned().unwrap_or_default();
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let last = messages.last().cloned().unwrap_or_default();
    let said = text(&last);
    if last["role"] != "tool" {
        if !said.contains("Carry out the plan.") {
            return ScriptedReply::ToolCalls(vec![add("too early")]);
        }
        let system = messages.iter().filter(|message| message["role"] == "system").map(text);
        return ScriptedReply::ToolCalls(notes(&system.collect::<Vec<_>>().join("\n")));
    }
    if said.contains("approve a plan first") {
        let steps =
            json!([{ "text": "note milk" }, { "text": "note bread" }, { "text": "tell what was noted" }]);
        return ScriptedReply::ToolCalls(vec![("talon__plan".to_owned(), json!({ "steps": steps }))]);
    }
    match notes(&said) {
        calls if said.starts_with("The user") && !calls.is_empty() => ScriptedReply::ToolCalls(calls),
        _ if said.starts_with("The user does not approve") => {
            ScriptedReply::Text("Nothing is noted.".to_owned())
        }
        _ => ScriptedReply::Text("All is noted.".to_owned()),
    }
}

struct Setting {
    supervisor: Supervisor,
    _provider: Provider,
}

async fn start() -> Setting {
    let provider = Provider::responding(shopper).await;
    let builder = with_agent(Builder::new(), &provider, "  confirm: { default: never }", "");
    let supervisor = builder.plugin("notes", &example("notes"), &[], "").start().await;
    assert_eq!(supervisor.client.plugin("notes").await.state, "ready");
    Setting { supervisor, _provider: provider }
}

impl Setting {
    async fn agent(&self) -> AgentClient<Channel> {
        AgentClient::new(dial(&self.supervisor.agent_socket()).await.expect("it listens"))
    }

    /// What was really noted, in order.
    async fn noted(&self) -> Vec<String> {
        let output = self.supervisor.cli(&["call", "notes.list", "--raw"]).await;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let all: std::collections::BTreeMap<u64, String> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        all.into_values().collect()
    }

    fn talon(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program("talon"));
        command.arg("--socket").arg(self.supervisor.socket()).args(args).env("NO_COLOR", "1");
        command.env("XDG_STATE_HOME", self.supervisor.scratch.join("state")).env("LANG", "C.UTF-8");
        command
    }
}

// Promises: CLI-81, AGENT-200, AGENT-201
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_shown_changed_and_approved_before_anything_is_done() {
    let setting = start().await;
    let mut all = Vec::new();
    for columns in [200, 80, 20] {
        let mut terminal = Terminal::start(&mut setting.talon(&["ask", "--plan", "Shop"]), columns, 60);
        // A narrow window breaks lines anywhere.
        let joined = |screen: &str| {
            screen.lines().map(|line| format!("{line:<w$}", w = usize::from(columns))).collect::<String>()
        };
        let shows = |screen: &str, text: &str| joined(screen).contains(text);
        // What is typed before the question stands last is discarded: nobody answers what they have not seen.
        let wait = async |terminal: &Terminal, texts: &[&str]| {
            let asked = |screen: &str| joined(screen).trim_end().ends_with("such as drop 2]");
            let wanted = |screen: &str| asked(screen) && texts.iter().all(|text| shows(screen, text));
            terminal.wait_for(&texts.join(", "), wanted).await
        };
        let screen = wait(&terminal, &["2.   note bread", "Carry out this plan"]).await;
        assert!(shows(&screen, "1.   note milk") && !shows(&screen, "talon.plan"), "{screen}");
        assert_eq!(setting.noted().await, all, "before it is approved");
        terminal.press("drop 4\r");
        wait(&terminal, &["there is no step 4: the plan has 3"]).await;
        terminal.press("reword 1 note eggs\r");
        wait(&terminal, &["1.   note eggs"]).await;
        terminal.press("move 2 1\r");
        wait(&terminal, &["1.   note bread", "2.   note eggs"]).await;
        terminal.press("perhaps\r");
        wait(&terminal, &["y carries it out as it stands"]).await;
        terminal.press("y\r");
        terminal.wait_for("the answer", |screen| shows(screen, "All is noted.")).await;
        assert!(terminal.ended().await.success(), "{}", terminal.contents());
        all.extend(["bread".to_owned(), "eggs".to_owned()]);
        assert_eq!(setting.noted().await, all);
    }
    // A plan that is refused is not carried out.
    let mut terminal = Terminal::start(&mut setting.talon(&["ask", "--plan", "Shop"]), 80, 40);
    terminal.wait_text("Carry out this plan").await;
    terminal.press("no, I was there\r");
    terminal.wait_text("Nothing is noted.").await;
    assert!(terminal.ended().await.success());
    assert_eq!(setting.noted().await, all);
    setting.supervisor.stop().await;
}

// Promises: CLI-81
#[tokio::test(flavor = "multi_thread")]
async fn a_chat_begins_shows_changes_and_carries_out_a_plan() {
    let setting = start().await;
    let mut terminal = Terminal::start(&mut setting.talon(&["chat"]), 100, 60);
    let types = async |terminal: &Terminal, keys: &str| {
        terminal.wait_for("an editor", |_| !terminal.not_restored().is_empty()).await;
        terminal.press(keys);
    };
    types(&terminal, "/plan\r").await;
    terminal.wait_text("plan: none").await;
    types(&terminal, "/plan add note tea\r").await;
    terminal.wait_text("1.   note tea").await;
    types(&terminal, "/plan add note salt\r").await;
    terminal.wait_text("2.   note salt").await;
    types(&terminal, "/plan add note oil\r").await;
    terminal.wait_text("3.   note oil").await;
    types(&terminal, "/plan done 2\r").await;
    terminal.wait_text("plan (1 of 3 done)").await;
    types(&terminal, "/plan approve\r").await;
    terminal.wait_text("All is noted.").await;
    assert_eq!(setting.noted().await, ["tea", "oil"]);
    types(&terminal, "/plan clear\r").await;
    terminal.wait_for("no plan", |screen| screen.matches("plan: none").count() == 2).await;
    types(&terminal, "/plan ask Shop again\r").await;
    terminal.wait_text("Carry out this plan").await;
    terminal.press("later\r");
    terminal.wait_text("the turn waits for an approval").await;
    types(&terminal, "/plan drop 1\r").await;
    terminal.wait_text("1.   note bread").await;
    // What this chat shows is what is asked about.
    types(&terminal, "/plan approve\r").await;
    terminal.wait_text("exactly as shown? [y/N]").await;
    terminal.press("y\r");
    terminal.wait_for("the second answer", |screen| screen.matches("All is noted.").count() == 2).await;
    assert_eq!(setting.noted().await, ["tea", "oil", "bread"]);
    types(&terminal, "\u{4}").await;
    assert!(terminal.ended().await.success());
    setting.supervisor.stop().await;
}

// Promises: CLI-81, AGENT-201
#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_a_plan_waits_and_is_changed_by_its_session() {
    let setting = start().await;
    let asked = ask(&setting.supervisor, "Shop", &["--plan", "--no-wait"]).await;
    assert_eq!((asked.code, asked.text("reason")), (Some(3), "approval"), "{asked:?}");
    let session = asked.text("session_id").to_owned();
    let approval = &asked.said["approvals"][0];
    assert_eq!(approval["plan"]["steps"][0]["text"], "note milk", "{asked:?}");
    let id = approval["id"].as_str().expect("an id").to_owned();
    let listed = setting.supervisor.cli(&["approval", "list"]).await;
    assert!(String::from_utf8_lossy(&listed.stdout).contains("plan of the model"), "{listed:?}");
    let plan = async |change: &[&str]| {
        let args = [&["session", "plan", &session, "--output", "json"], change].concat();
        AskResult::of(&setting.supervisor.cli(&args).await)
    };
    let shown = plan(&[]).await;
    assert_eq!((shown.said["revision"].clone(), shown.text("changed_by")), (json!(1), "model"), "{shown:?}");
    let wrong = plan(&["drop", "9"]).await;
    assert!(wrong.code == Some(2) && wrong.stderr.contains("the plan has 3"), "{wrong:?}");
    let changed = plan(&["insert", "1", "note", "rice"]).await;
    assert_eq!(changed.said["steps"][0]["text"], "note rice", "{changed:?}");
    assert_eq!(setting.noted().await, [""; 0]);
    let approved = setting.supervisor.cli(&["approval", "approve", &id]).await;
    assert!(approved.status.success(), "{approved:?}");
    assert!(String::from_utf8_lossy(&approved.stderr).contains("1.   note rice"), "{approved:?}");
    let shown = wait_session_text(&setting.supervisor, &session, "All is noted.").await;
    assert!(shown.contains("plan (0 of 4 done, approved)"), "{shown}");
    assert_eq!(setting.noted().await, ["rice", "milk", "bread"]);
    // Two options that do not go together.
    let refused = setting.supervisor.cli(&["ask", "--plan", "--no-tools", "Shop"]).await;
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    setting.supervisor.stop().await;
}

// Promises: AGENT-202
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_waits_outlives_the_agent_as_it_was_changed() {
    let setting = start().await;
    let mut agent = setting.agent().await;
    let request = AskRequest { text: "Shop".to_owned(), plan: true, ..AskRequest::default() };
    let mut turn = agent.ask(request).await.expect("a turn").into_inner();
    let asked = next_chunk(&mut turn, pending_approval).await;
    let seen = asked.plan.clone().expect("it is about a plan");
    let step = |text: &str| PlanStep { text: text.to_owned(), state: String::new() };
    let request = |revision: u64, steps: &[&str]| SetPlanRequest {
        session_id: asked.session_id.clone(),
        steps: steps.iter().map(|text| step(text)).collect(),
        revision,
    };
    let edited =
        agent.set_plan(request(seen.revision, &["note soap"])).await.expect("it was seen").into_inner();
    let followed = next_chunk(&mut turn, |kind| match kind {
        Kind::Plan(plan) => Some(plan.clone()),
        _ => None,
    });
    assert_eq!(followed.await, edited);
    let late = agent.set_plan(request(seen.revision, &["note nothing"])).await.expect_err("it was changed");
    assert_eq!(late.code(), Code::FailedPrecondition, "{late}");
    let long = "x".repeat(401);
    let refused = agent.set_plan(request(edited.revision, &[&long])).await.expect_err("it is too long");
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    let decision = |plan_revision| DecideRequest {
        id: asked.id.clone(),
        approve: true,
        plan_revision,
        ..DecideRequest::default()
    };
    let late = agent.decide(decision(seen.revision)).await.expect_err("another plan was seen");
    assert_eq!(late.code(), Code::FailedPrecondition, "{late}");

    let before = setting.supervisor.agent_status().await;
    kill(Pid::from_raw(before.pid.cast_signed()), Signal::SIGKILL).expect("it runs");
    setting
        .supervisor
        .wait_agent("another process", |agent| agent.state == "serving" && agent.pid != before.pid)
        .await;
    let mut agent = setting.agent().await;
    let session_id = asked.session_id.clone();
    let mut turn = agent.attach(AttachRequest { session_id }).await.expect("it goes on").into_inner();
    let again = next_chunk(&mut turn, pending_approval).await;
    assert_eq!((&again.id, again.plan), (&asked.id, Some(edited.clone())));
    let listed = agent.list_approvals(ListApprovalsRequest::default()).await.expect("a list").into_inner();
    assert_eq!(listed.approvals.len(), 1, "{listed:?}");
    agent.decide(decision(edited.revision)).await.expect("it was seen");
    assert_eq!(next_chunk(&mut turn, final_answer).await, "All is noted.");
    assert_eq!(setting.noted().await, ["soap"]);
    let request = GetSessionRequest { session_id: asked.session_id.clone(), ..GetSessionRequest::default() };
    let session = agent.get_session(request).await.expect("it is there").into_inner().session;
    let plan = session.and_then(|session| session.plan).expect("it stays");
    assert!(plan.approved && plan.steps.len() == 1, "{plan:?}");
    setting.supervisor.stop().await;
}
