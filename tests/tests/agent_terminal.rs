//! The agent's verbs in a real terminal.

use std::process::Command;

use rustix::process::Signal;
use talon_proto::agent::{Approval, Done, Error, LoopState, ProviderState, Text, Thinking, chunk};
use talon_tests::agent::{FakeAgent, Step};
use talon_tests::{Terminal, program, until};

const SESSION: &str = "01K0000000000000000000SESS";

fn text(text: &str) -> Step {
    Step::Say(chunk::Kind::Text(Text { text: text.into() }))
}

fn done(text: &str) -> Step {
    Step::Say(chunk::Kind::Done(Done {
        text: text.into(),
        provider: "ollama".into(),
        model: "llama3.2".into(),
        ..Done::default()
    }))
}

fn cancelled() -> Step {
    Step::Say(chunk::Kind::Error(Error {
        reason: "cancelled".into(),
        message: "you cancelled the turn: ask again".into(),
        ..Error::default()
    }))
}

fn approval(id: &str) -> Step {
    Step::Say(chunk::Kind::Approval(Approval {
        id: id.into(),
        session_id: SESSION.into(),
        plugin: "shell".into(),
        action: "run".into(),
        args: [("command".to_owned(), "rm -rf build\u{1b}[2J".to_owned())].into(),
        why: "pattern: rm -rf".into(),
        state: "pending".into(),
        digest: "d9".into(),
        ..Approval::default()
    }))
}

fn talon(agent: &FakeAgent, args: &[&str]) -> Command {
    let mut command = Command::new(program("talon"));
    command.arg("--socket").arg(agent.socket()).args(args);
    command.env("XDG_STATE_HOME", agent.scratch.join("state")).env("NO_COLOR", "1");
    command
}

/// Types where there is an editor: what comes before it is the terminal's own to edit.
async fn types(terminal: &Terminal, keys: &str) {
    terminal.wait_for("an editor", |_| !terminal.not_restored().is_empty()).await;
    terminal.press(keys);
}

// Promises: CLI-42
#[tokio::test]
async fn an_approval_is_asked_about_with_what_will_run() {
    let agent = FakeAgent::start();
    agent.on_ask(
        "Remove it",
        vec![approval("01K0000000000000000000APP9"), Step::Decided, done("It is gone.")],
    );
    let mut terminal = Terminal::start(&mut talon(&agent, &["ask", "Remove it"]), 100, 24);
    let screen = terminal.wait_text("Run shell.run, exactly as shown").await;
    assert!(screen.contains("command = rm -rf build␛[2J"), "{screen}");
    terminal.press("what?\r");
    terminal.wait_text("later decides nothing").await;
    terminal.press("y\r");
    terminal.wait_text("It is gone.").await;
    assert!(terminal.ended().await.success());
    let decided = "Decide 01K0000000000000000000APP9 approve=true digest=d9 reason=\"\"".to_owned();
    assert!(agent.requests().contains(&decided), "{:?}", agent.requests());
}

#[tokio::test]
async fn a_sign_of_life_is_not_drawn_over_an_answer() {
    let agent = FakeAgent::start();
    let phase = |phase: &str| {
        Step::Say(chunk::Kind::Loop(LoopState {
            phase: phase.into(),
            max_iterations: 10,
            ..LoopState::default()
        }))
    };
    let answer = "I have no answer to that.";
    agent.on_ask(
        "Hello",
        vec![phase("planning"), text(answer), phase("deciding"), phase("responding"), done(answer)],
    );
    let mut terminal = Terminal::start(&mut talon(&agent, &["ask", "Hello"]), 100, 24);
    assert!(terminal.ended().await.success());
    let screen = terminal.wait_text(answer).await;
    assert!(!screen.contains("deciding"), "{screen}");
}

// Promises: CLI-42
#[tokio::test]
async fn what_was_typed_before_the_question_is_no_answer_to_it() {
    let agent = FakeAgent::start();
    let before = [text("One moment."), Step::Decided];
    let after = [approval("01K0000000000000000000APP9"), Step::Cancelled, cancelled()];
    agent.on_ask("Remove it", [&before[..], &after[..]].concat());
    let mut terminal = Terminal::start(&mut talon(&agent, &["ask", "Remove it"]), 100, 24);
    terminal.wait_text("One moment.").await;
    terminal.press("y\r");
    // The terminal shows what it has taken.
    terminal.wait_text("One moment.y").await;
    // Somebody else's decision lets the turn go on, to its question.
    agent.continue_turn();
    terminal.wait_text("exactly as shown").await;
    terminal.press("later\r");
    terminal.wait_text("talon approval approve").await;
    assert!(!agent.requests().iter().any(|heard| heard.starts_with("Decide")), "{:?}", agent.requests());
    terminal.press("\u{3}");
    assert_eq!(terminal.ended().await.code(), Some(130));
}

// Promises: CLI-42
#[tokio::test]
async fn a_denial_carries_its_reason_and_later_decides_nothing() {
    let agent = FakeAgent::start();
    let first = [approval("01K0000000000000000000APP8"), Step::Decided];
    let second = [approval("01K0000000000000000000APP9"), Step::Decided];
    agent.on_ask("Remove it", [&first[..], &second[..], &[done("Nothing was removed.")]].concat());
    let mut terminal = Terminal::start(&mut talon(&agent, &["ask", "Remove it", "--no-wait"]), 100, 24);
    terminal.wait_text("exactly as shown (01K0000000000000000000APP8)").await;
    terminal.press("no, use the trash\r");
    terminal.wait_text("exactly as shown (01K0000000000000000000APP9)").await;
    terminal.press("later\r");
    terminal.wait_text("talon approval approve 01K0000000000000000000APP9").await;
    assert_eq!(terminal.ended().await.code(), Some(3));
    let decisions: Vec<String> =
        agent.requests().into_iter().filter(|heard| heard.starts_with("Decide")).collect();
    assert_eq!(
        decisions,
        ["Decide 01K0000000000000000000APP8 approve=false digest=d9 reason=\"use the trash\""]
    );
}

// Promises: CLI-41
#[tokio::test]
async fn control_c_cancels_what_is_on_its_way() {
    let agent = FakeAgent::start();
    agent.on_ask("for ever", vec![text("Half of it"), Step::Cancelled, cancelled()]);
    let mut terminal = Terminal::start(&mut talon(&agent, &["ask", "for ever"]), 100, 24);
    terminal.wait_text("Half of it").await;
    terminal.press("\u{3}");
    terminal.wait_text("You cancelled the turn").await;
    assert_eq!(terminal.ended().await.code(), Some(130));
    assert!(agent.requests().contains(&format!("Cancel {SESSION}")), "{:?}", agent.requests());
    terminal.wait_restored().await;
}

// Promises: CLI-44
#[tokio::test]
async fn a_conversation_is_edited_remembered_cancelled_and_left() {
    let agent = FakeAgent::start();
    agent.on_ask(
        "Hello",
        vec![
            Step::Say(chunk::Kind::Thinking(Thinking { text: "A greeting.".into() })),
            text("Hi "),
            text("there."),
            done("Hi there."),
        ],
    );
    agent.on_ask("for ever", vec![text("Half of it"), Step::Cancelled, cancelled()]);
    let mut terminal = Terminal::start(&mut talon(&agent, &["chat"]), 100, 40);
    terminal.wait_text("/help shows what there is").await;
    // A slip, mended with keys: the cursor goes back and a letter is taken out.
    types(&terminal, "Helllo\u{1b}[D\u{1b}[D\u{7f}\r").await;
    let screen = terminal.wait_text("ollama/llama3.2").await;
    assert!(screen.contains("A greeting.") && screen.contains("Hi there."), "{screen}");
    types(&terminal, "/he\t\r").await;
    terminal.wait_text("begin a new session; this one is kept").await;
    types(&terminal, "for ever\r").await;
    terminal.wait_text("Half of it").await;
    terminal.press("\u{3}");
    terminal.wait_text("You cancelled the turn").await;
    // The history has the first message, three lines up.
    types(&terminal, "\u{1b}[A\u{1b}[A\u{1b}[A\r").await;
    until("the first message again", || {
        agent.requests().iter().filter(|heard| heard.starts_with("Ask \"Hello\"")).count() == 2
    })
    .await;
    terminal.wait_for("both answers", |text| text.matches("Hi there.").count() == 2).await;
    types(&terminal, "\u{3}").await;
    terminal.wait_text("Ctrl-D or /exit leaves").await;
    types(&terminal, "\u{4}").await;
    terminal.wait_text(&format!("talon chat --session {SESSION}")).await;
    assert!(terminal.ended().await.success());
    terminal.wait_restored().await;
    let history = agent.scratch.join("state/talon/chat-history");
    let kept = std::fs::read_to_string(&history).expect("the history is kept");
    assert!(kept.contains("Hello") && kept.contains("for ever"), "{kept}");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&history.metadata().expect("it is there").permissions());
    assert_eq!(mode & 0o777, 0o600);
}

// Promises: CLI-42
#[tokio::test]
async fn a_call_that_is_put_off_can_be_decided_later() {
    let agent = FakeAgent::start();
    agent.on_ask("Remove it", vec![approval("01K0000000000000000000APP9"), Step::Decided]);
    agent.on_attach(vec![text("It is gone."), done("It is gone.")]);
    let mut terminal = Terminal::start(&mut talon(&agent, &["chat"]), 100, 40);
    terminal.wait_text("/help shows what there is").await;
    types(&terminal, "Remove it\r").await;
    terminal.wait_text("[y/N, no REASON, later]").await;
    terminal.press("later\r");
    terminal.wait_text("/approve or /deny it").await;
    types(&terminal, "/approve\r").await;
    terminal.wait_text("It is gone.").await;
    types(&terminal, "/exit\r").await;
    assert!(terminal.ended().await.success());
    assert!(agent.requests().contains(&format!("Attach {SESSION}")), "{:?}", agent.requests());
}

// Promises: CLI-44
#[tokio::test]
async fn a_session_in_a_turn_is_attached_to_and_a_scripted_provider_is_named() {
    let agent = FakeAgent::start();
    let scripted = ProviderState {
        name: "scripted".into(),
        kind: "scripted".into(),
        state: "ready".into(),
        scripted: true,
        ..ProviderState::default()
    };
    agent.set_providers(vec![scripted]);
    agent.on_attach(vec![Step::Decided, text("It goes on."), done("It goes on.")]);
    let mut terminal = Terminal::start(
        &mut talon(&agent, &["chat", "--session", "01K0000000000000000000WAIT", "--model", "haiku"]),
        100,
        40,
    );
    terminal.wait_text("no model answers here: the provider is scripted").await;
    // What waits is asked about, though it came before we did.
    let screen = terminal.wait_text("exactly as shown (01K0000000000000000000APP1)").await;
    assert!(screen.contains("Remove ␛[2Jthe"), "{screen}");
    terminal.press("y\r");
    terminal.wait_text("It goes on.").await;
    types(&terminal, "\u{4}").await;
    assert!(terminal.ended().await.success());
    let told = "UpdateSession 01K0000000000000000000WAIT Some(\"haiku\") None None".to_owned();
    assert!(agent.requests().contains(&told), "{:?}", agent.requests());
}

// Promises: CLI-44
#[tokio::test]
async fn a_signal_gives_the_terminal_back() {
    let agent = FakeAgent::start();
    for signal in [Signal::TERM, Signal::HUP] {
        let mut terminal = Terminal::start(&mut talon(&agent, &["chat"]), 80, 24);
        terminal.wait_for("an editor", |_| !terminal.not_restored().is_empty()).await;
        terminal.signal(signal);
        assert!(terminal.ended().await.success(), "{signal:?}");
        terminal.wait_restored().await;
    }
}
