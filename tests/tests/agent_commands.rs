//! The agent's verbs as scripts and pipes meet them, over an agent that says what each test wants.

use std::process::{Output, Stdio};

use talon_proto::agent::{
    Approval, Attempt, Done, Error, LoopState, Notice, Text, Thinking, ToolCall, ToolResult, Usage, chunk,
};
use talon_tests::agent::{FakeAgent, Step, text_of};
use talon_tests::{Scratch, program, until};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

fn say(kind: chunk::Kind) -> Step {
    Step::Say(kind)
}

fn text(text: &str) -> Step {
    say(chunk::Kind::Text(Text { text: text.into(), ..Text::default() }))
}

fn done(text: &str) -> Done {
    Done {
        text: text.into(),
        usage: Some(Usage { input_tokens: 1200, output_tokens: 34, ..Usage::default() }),
        provider: "ollama".into(),
        model: "llama3.2".into(),
        iteration: 2,
        cost_pico_usd: 1_200_000_000,
        duration_ms: 3200,
        attempts: vec![Attempt {
            provider: "ollama".into(),
            model: "llama3.2".into(),
            success: true,
            latency_ms: 900,
            ..Attempt::default()
        }],
        tool_calls: 1,
        ..Done::default()
    }
}

/// A turn with all that can be in one.
fn long_turn() -> Vec<Step> {
    vec![
        say(chunk::Kind::Loop(LoopState {
            phase: "planning".into(),
            iteration: 1,
            max_iterations: 10,
            state: "await_llm".into(),
            event: "start_loop".into(),
            ..LoopState::default()
        })),
        say(chunk::Kind::Thinking(Thinking { text: "Where would that be?".into() })),
        text("I will look."),
        say(chunk::Kind::ToolCall(ToolCall {
            call_id: "c1".into(),
            plugin: "git".into(),
            action: "log".into(),
            tool: "git__log".into(),
            arguments: "{\"limit\": 1}".into(),
        })),
        say(chunk::Kind::ToolResult(ToolResult {
            call_id: "c1".into(),
            tool: "git__log".into(),
            success: true,
            output: "[plugin_output]\none commit\u{1b}[2J\n[/plugin_output]".into(),
            duration_ms: 12,
            truncated: false,
            ..ToolResult::default()
        })),
        say(chunk::Kind::Notice(Notice {
            level: "warn".into(),
            text: "openai did not answer; ollama is asked".into(),
            discard_text: false,
        })),
        text("One thing"),
        text(" changed."),
        say(chunk::Kind::Done(done("One thing changed."))),
    ]
}

fn failed(reason: &str, partial: &str) -> Step {
    say(chunk::Kind::Error(Error {
        reason: reason.into(),
        message: format!("it ended for {reason}: do something about it"),
        partial: partial.into(),
        attempts: vec![Attempt {
            provider: "openai".into(),
            model: "gpt".into(),
            error_class: "timeout".into(),
            error: "no answer within 60s".into(),
            ..Attempt::default()
        }],
        ..Error::default()
    }))
}

fn approval() -> Approval {
    Approval {
        id: "01K0000000000000000000APP9".into(),
        session_id: "01K0000000000000000000SESS".into(),
        plugin: "shell".into(),
        action: "run".into(),
        args: [("command".to_owned(), "rm -rf build".to_owned())].into(),
        why: "pattern: rm -rf".into(),
        state: "pending".into(),
        digest: "d9".into(),
        ..Approval::default()
    }
}

fn command(agent: &FakeAgent, args: &[&str]) -> Command {
    let mut command = Command::new(program("talon"));
    command.arg("--socket").arg(agent.socket()).args(args);
    command.env("TZ", "UTC").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

async fn run(agent: &FakeAgent, args: &[&str]) -> Output {
    command(agent, args).output().await.expect("talon starts")
}

async fn run_with(agent: &FakeAgent, args: &[&str], stdin: &str) -> Output {
    let mut child = command(agent, args).stdin(Stdio::piped()).spawn().expect("talon starts");
    let mut to = child.stdin.take().expect("it is piped");
    // A program that refuses a long input closes the pipe before its end.
    let _ = to.write_all(stdin.as_bytes()).await;
    drop(to);
    child.wait_with_output().await.expect("it ends")
}

/// Both outputs and the exit code, for a snapshot.
fn told(output: &Output) -> String {
    format!(
        "exit code {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

// Promises: CLI-40
#[tokio::test]
async fn a_question_is_answered_in_text_and_in_json() {
    let agent = FakeAgent::start();
    agent.on_ask("What changed?", long_turn());
    insta::assert_snapshot!("ask", told(&run(&agent, &["ask", "What changed?"]).await));
    insta::assert_snapshot!("ask-quiet", told(&run(&agent, &["ask", "What changed?", "--quiet"]).await));
    insta::assert_snapshot!(
        "ask-json",
        told(&run(&agent, &["ask", "What changed?", "--output", "json"]).await)
    );
    let args = ["ask", "What changed?", "--output", "json", "--stream"];
    insta::assert_snapshot!("ask-stream", told(&run(&agent, &args).await));
}

// Promises: CLI-65
#[tokio::test]
async fn piped_data_and_files_go_with_the_question_whole() {
    let agent = FakeAgent::start();
    let file = text_of(&agent.file("a.rs", "fn main() {}\n"));
    let fenced = text_of(&agent.file("notes.md", "```\ncode\n```"));
    let mention = format!("@{file}");
    let asked = format!(
        "explain @{file}\n\n{file}:\n```\nfn main() {{}}\n```\n\n{fenced}:\n````\n```\ncode\n```\n````\n\nstdin:\n```\n1\n2\n```"
    );
    agent.on_ask(&asked, vec![say(chunk::Kind::Done(done("It is a program.")))]);
    // An @ inside of the question is text: only the argument of its own names a file.
    let question = format!("explain @{file}");
    let output = run_with(&agent, &["ask", &question, &mention, "--file", &fenced], "1\n2").await;
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("It is a program."), "{}", told(&output));
    // An empty pipe is named: what should have filled it may have failed.
    agent.on_ask("alone", vec![say(chunk::Kind::Done(done("yes")))]);
    let output = run_with(&agent, &["ask", "alone"], "").await;
    assert!(told(&output).contains("stdin was empty"), "{}", told(&output));
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

// Promises: CLI-65
#[tokio::test]
async fn what_is_missing_or_too_large_is_refused_before_anything_is_asked() {
    let agent = FakeAgent::start();
    let large = text_of(&agent.file("large.txt", &"x".repeat((8 << 20) + 1)));
    let half = text_of(&agent.file("half.txt", &"x".repeat(150 << 10)));
    let missing = text_of(&agent.scratch.join("missing.txt"));
    let dir = text_of(&agent.scratch.join(""));
    for (args, words) in [
        (vec!["--file", &missing], "No such file"),
        (vec!["--file", &dir], "Is a directory"),
        (vec!["--file", &large], "holds more than 8388608 bytes"),
        (vec!["second"], "put quotes around it"),
        (vec!["--file", "-", "--schema", "-"], "only one of them"),
    ] {
        let output = run(&agent, &[&["ask", "explain"], &args[..]].concat()).await;
        assert_eq!(output.status.code(), Some(2), "{}", told(&output));
        assert!(told(&output).contains(words), "{words}: {}", told(&output));
    }
    // A file in the question's place is not taken for one.
    let output = run(&agent, &["ask", &format!("@{half}")]).await;
    assert!(told(&output).contains("there is no question before it"), "{}", told(&output));
    // A pipe of 1 MB is refused, too.
    let output = run_with(&agent, &["ask", "explain"], &"x".repeat(1 << 20)).await;
    assert!(told(&output).contains("stdin holds more than 262144 bytes"), "{}", told(&output));
    assert_eq!(agent.requests(), [""; 0]);
}

// Promises: CLI-65
#[tokio::test]
async fn a_pipe_that_stays_open_is_named_and_waited_for() {
    let agent = FakeAgent::start();
    agent.on_ask("explain\n\nstdin:\n```\nlate\n```", vec![say(chunk::Kind::Done(done("Late.")))]);
    let mut child = command(&agent, &["ask", "explain"]).stdin(Stdio::piped()).spawn().expect("talon starts");
    let mut to = child.stdin.take().expect("it is piped");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let note = lines.next_line().await.expect("it is text").expect("there is a note");
    assert!(note.contains("waiting for the end of stdin"), "{note}");
    to.write_all(b"late").await.expect("it is read");
    drop(to);
    let output = child.wait_with_output().await.expect("it ends");
    assert!(told(&output).contains("Late."), "{}", told(&output));
}

// Promises: CLI-40
#[tokio::test]
async fn what_is_wanted_of_a_turn_is_sent_with_it() {
    let agent = FakeAgent::start();
    agent.on_ask("from a pipe", vec![say(chunk::Kind::Done(done("{\"ports\": [1, 2]}")))]);
    let schema = agent.file("schema.json", "{\"type\": \"object\"}");
    let schema = text_of(&schema);
    let args = [
        "ask",
        "-",
        "--schema",
        &schema,
        "--model",
        "haiku",
        "--thinking",
        "low",
        "--session",
        "s9",
        "--tools",
        "git.*",
        "--tools",
        "files.read",
    ];
    let output = run_with(&agent, &args, "from a pipe").await;
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"ports\": [1, 2]}\n");
    let asked = "Ask \"from a pipe\" session=s9 model=haiku thinking=low schema=18 tools=[\"git.*\", \"files.read\"] \
                 no_tools=false";
    assert_eq!(agent.requests(), [asked]);
    let output =
        run_with(&agent, &["ask", "-", "--schema", &schema, "--output", "json"], "from a pipe").await;
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(value["answer"]["ports"][1], 2);
}

// Promises: CLI-40
#[tokio::test]
async fn a_turn_that_fails_has_its_exit_code_and_what_there_is_of_an_answer() {
    let agent = FakeAgent::start();
    for (reason, code) in [
        ("iterations", 1),
        ("invalid_answer", 1),
        ("over_budget", 3),
        ("exhausted", 4),
        ("no_provider", 6),
        ("key_refused", 6),
        ("request_refused", 6),
        ("internal", 70),
    ] {
        agent.on_ask(reason, vec![failed(reason, "Half an answer")]);
        let output = run(&agent, &["ask", reason]).await;
        assert_eq!(output.status.code(), Some(code), "{reason}: {output:?}");
    }
    insta::assert_snapshot!("ask-fails", told(&run(&agent, &["ask", "exhausted"]).await));
    insta::assert_snapshot!(
        "ask-fails-json",
        told(&run(&agent, &["ask", "exhausted", "--output", "json"]).await)
    );
    // What the agent refuses outright.
    let output = run(&agent, &["ask", "something else"]).await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

// Promises: CLI-46
#[tokio::test]
async fn a_scripted_answer_is_never_taken_for_a_models() {
    let agent = FakeAgent::start();
    let scripted =
        Done { scripted: true, provider: "scripted".into(), model: "scripted".into(), ..done("42") };
    agent.on_ask("What?", vec![say(chunk::Kind::Done(scripted))]);
    let output = run(&agent, &["ask", "What?", "--quiet"]).await;
    assert!(String::from_utf8_lossy(&output.stderr).contains("scripted: no model answered"), "{output:?}");
    let output = run(&agent, &["ask", "What?", "--output", "json"]).await;
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(value["scripted"], true);
}

// Promises: CLI-41
#[tokio::test]
async fn control_c_cancels_the_turn_and_is_told() {
    let agent = FakeAgent::start();
    let cancelled = failed("cancelled", "Half of it");
    agent.on_ask("for ever", vec![text("Half of it"), Step::Cancelled, cancelled]);
    let mut child = command(&agent, &["ask", "for ever"]).spawn().expect("talon starts");
    until("a question", || !agent.requests().is_empty()).await;
    // The first chunk has to be there: before it, letting go is all that there is.
    let pid = child.id().expect("it runs").to_string();
    let mut stderr = String::new();
    let mut from = child.stderr.take().expect("it is piped");
    // The client is ready once it listens to signals, which it does before it asks.
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.expect("kill is there").success());
    tokio::io::AsyncReadExt::read_to_string(&mut from, &mut stderr).await.expect("it is text");
    let output = child.wait_with_output().await.expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{stderr}");
}

// Promises: CLI-41
#[tokio::test]
async fn a_timeout_cancels_and_gives_what_there_is() {
    let agent = FakeAgent::start();
    agent.on_ask("for ever", vec![text("Half of it"), Step::Cancelled, failed("cancelled", "Half of it")]);
    let output = run(&agent, &["ask", "for ever", "--timeout", "200ms"]).await;
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Half of it\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("longer than --timeout"), "{output:?}");
    assert!(
        agent.requests().contains(&"Cancel 01K0000000000000000000SESS".to_owned()),
        "{:?}",
        agent.requests()
    );
    let output = run(&agent, &["ask", "for ever", "--timeout", "200ms", "--output", "json"]).await;
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(
        (&value["ok"], &value["reason"], &value["partial"]),
        (&false.into(), &"timed_out".into(), &"Half of it".into())
    );
}

// Promises: CLI-43
#[tokio::test]
async fn without_a_terminal_an_approval_is_waited_for_or_not() {
    let agent = FakeAgent::start();
    let steps = vec![
        say(chunk::Kind::Approval(approval())),
        Step::Decided,
        say(chunk::Kind::Done(done("It is gone."))),
    ];
    agent.on_ask("Remove it", steps);
    let output = run(&agent, &["ask", "Remove it", "--no-wait"]).await;
    insta::assert_snapshot!("ask-no-wait", told(&output));
    let output = run(&agent, &["ask", "Remove it", "--no-wait", "--output", "json"]).await;
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(
        (&value["reason"], &value["approvals"][0]["args"]["command"]),
        (&"approval".into(), &"rm -rf build".into())
    );

    let waits = tokio::spawn(command(&agent, &["ask", "Remove it"]).output());
    until("a third question", || {
        agent.requests().iter().filter(|heard| heard.starts_with("Ask")).count() == 3
    })
    .await;
    // Other clients can see it, and only then can it be decided.
    let mut decided = run(&agent, &["approval", "approve", &approval().id]).await;
    while decided.status.code() == Some(3) {
        decided = run(&agent, &["approval", "approve", &approval().id]).await;
    }
    insta::assert_snapshot!("approval-approve", told(&decided));
    let output = waits.await.expect("it runs").expect("talon starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "It is gone.\n");
    assert!(
        agent.requests().contains(&format!("Decide {} approve=true digest=d9 reason=\"\"", approval().id))
    );
}

// Promises: CLI-45
#[tokio::test]
async fn every_verb_speaks_to_people_and_to_programs() {
    let agent = FakeAgent::start();
    agent.add_ghosts();
    let verbs: [(&str, &[&str]); 46] = [
        ("session-list", &["session", "list"]),
        ("session-list-limit", &["session", "list", "--limit", "1"]),
        ("session-show", &["session", "show", "01K0000000000000000000SESS"]),
        ("session-resume", &["session", "resume", "01K0000000000000000000WAIT"]),
        (
            "session-set",
            &["session", "set", "01K0000000000000000000SESS", "--verbosity", "low", "--top-p", "0.9"],
        ),
        ("session-plan", &["session", "plan", "01K0000000000000000000SESS"]),
        ("session-plan-add", &["session", "plan", "01K0000000000000000000SESS", "add", "tell", "it"]),
        ("session-compact", &["session", "compact", "01K0000000000000000000SESS", "--keep", "2"]),
        ("session-delete", &["session", "delete", "01K0000000000000000000SESS"]),
        ("notification-list", &["notification", "list"]),
        ("notification-list-state", &["notification", "list", "--state", "given_up"]),
        ("notification-retry", &["notification", "retry", "01K0NTFCAT0000000000000002"]),
        ("notification-retry-all", &["notification", "retry", "--all"]),
        ("notification-test", &["notification", "test", "ops-mail"]),
        ("shadow-list", &["shadow", "list"]),
        ("shadow-list-state", &["shadow", "list", "--state", "dismissed"]),
        ("shadow-show", &["shadow", "show", "01K0GH0ST00000000000000001"]),
        ("shadow-why", &["shadow", "why", "01K0GH0ST00000000000000001"]),
        ("shadow-approve", &["shadow", "approve", "01K0GH0ST00000000000000001"]),
        ("shadow-custom", &["shadow", "approve", "01K0GH0ST00000000000000001", "--action", "Run tests"]),
        ("shadow-dismiss", &["shadow", "dismiss", "01K0GH0ST00000000000000001"]),
        ("shadow-snooze", &["shadow", "snooze", "01K0GH0ST00000000000000001", "--for", "2h"]),
        ("shadow-pause", &["shadow", "pause", "--for", "2h"]),
        ("shadow-pause-repository", &["shadow", "pause", "--repository", "/home/anna/old"]),
        ("shadow-resume", &["shadow", "resume"]),
        ("shadow-stats", &["shadow", "stats"]),
        ("shadow-log", &["shadow", "log"]),
        ("schedule-list", &["schedule", "list"]),
        ("schedule-next", &["schedule", "next"]),
        ("schedule-run", &["schedule", "run", "digest"]),
        ("schedule-pause", &["schedule", "pause", "digest"]),
        ("schedule-resume", &["schedule", "resume", "digest"]),
        ("schedule-accept", &["schedule", "accept", "files.tidy"]),
        ("schedule-reject", &["schedule", "reject", "files.tidy"]),
        ("schedule-history", &["schedule", "history"]),
        ("schedule-history-limit", &["schedule", "history", "digest", "--limit", "2"]),
        ("memory-list", &["memory", "list"]),
        ("memory-search", &["memory", "search", "tea"]),
        ("memory-show", &["memory", "show", "01K0000000000000000000MEM2"]),
        ("memory-forget", &["memory", "forget", "--tag", "workflow"]),
        ("model-list", &["model", "list"]),
        ("approval-list", &["approval", "list", "--all"]),
        ("forget", &["forget", "anna"]),
        ("approval-rules", &["approval", "rules"]),
        ("approval-revoke", &["approval", "revoke", "01K0000000000000000000RUL1"]),
        ("approval-show", &["approval", "show", "01K0000000000000000000APP1"]),
    ];
    for (name, args) in verbs {
        insta::assert_snapshot!(name, told(&run(&agent, args).await));
        let mut args = args.to_vec();
        args.extend(["--output", "json"]);
        insta::assert_snapshot!(format!("{name}-json"), told(&run(&agent, &args).await));
    }
    let output =
        run(&agent, &["approval", "deny", "01K0000000000000000000APP1", "--reason", "use the trash"]).await;
    insta::assert_snapshot!("approval-deny", told(&output));
    let output = run(&agent, &["approval", "approve", "01K0000000000000000000APP1"]).await;
    insta::assert_snapshot!("approval-too-late", told(&output));
    for (args, code) in [
        (&["session", "show", "nothing"][..], 3),
        (&["schedule", "run", "nothing"], 3),
        (&["schedule", "accept", "files.tydi"], 3),
        (&["notification", "retry", "nothing"], 3),
        (&["notification", "test", "team-chat"], 1),
        (&["notification", "test", "nothing"], 3),
        (&["shadow", "why", "nothing"], 3),
        (&["shadow", "dismiss", "01K0GH0ST00000000000000000"], 3),
        (&["memory", "show", "nothing"], 3),
        (&["memory", "forget", "nothing"], 3),
        (&["approval", "show", "nothing"], 3),
        (&["approval", "list", "--everybody"], 7),
    ] {
        let output = run(&agent, args).await;
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    }
}

// Promises: CLI-44
#[tokio::test]
async fn a_pipe_can_hold_a_conversation() {
    let agent = FakeAgent::start();
    agent.on_ask("Hello", vec![text("Hi "), text("there.\n"), say(chunk::Kind::Done(done("Hi there.\n")))]);
    agent.on_ask("And in\nFrench?", vec![say(chunk::Kind::Done(done("Salut.")))]);
    let lines =
        "Hello\nAnd in\\\nFrench?\n/model haiku\n/cost\n/tools\n/nothing\n/compact 1\n/session\n/clear\n";
    let output = run_with(&agent, &["chat", "--thinking", "low"], lines).await;
    insta::assert_snapshot!("chat", told(&output));
    insta::assert_snapshot!("chat-heard", agent.requests().join("\n"));
    // How the last turn ended is how a script's chat ends.
    agent.on_ask("fail", vec![failed("exhausted", "")]);
    assert_eq!(run_with(&agent, &["chat"], "fail\n").await.status.code(), Some(4));
}

// Promises: CLI-45
#[tokio::test]
async fn without_an_agent_every_verb_says_how_to_get_one() {
    let scratch = Scratch::new();
    let socket = scratch.join("host.sock");
    let _supervisor =
        std::os::unix::net::UnixListener::bind(&socket).expect("a scratch directory takes a socket");
    let socket = text_of(&socket);
    for verb in
        ["ask x", "chat", "session list", "memory list", "model list", "schedule list", "approval list"]
    {
        let mut args = vec!["--socket", &socket];
        args.extend(verb.split(' '));
        let output = talon_tests::cli(&args).await;
        assert_eq!(output.status.code(), Some(5), "{verb}: {output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("list a provider") && stderr.contains("talon status"), "{verb}: {stderr}");
    }
}
