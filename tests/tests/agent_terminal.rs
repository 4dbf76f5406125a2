//! The agent's verbs in a real terminal.

use std::process::Command;

use rustix::process::Signal;
use talon_proto::agent::{Approval, Done, Error, LoopState, ProviderState, Text, Thinking, chunk};
use talon_tests::agent::{FakeAgent, Step};
use talon_tests::{Terminal, program, until};

const SESSION: &str = "01K0000000000000000000SESS";

fn text(text: &str) -> Step {
    Step::Say(chunk::Kind::Text(Text { text: text.into(), ..Text::default() }))
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
    approval_of(id, "rm -rf build\u{1b}[2J")
}

fn approval_of(id: &str, command: &str) -> Step {
    Step::Say(chunk::Kind::Approval(Approval {
        id: id.into(),
        session_id: SESSION.into(),
        plugin: "shell".into(),
        action: "run".into(),
        args: [("command".to_owned(), command.to_owned())].into(),
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
    let screen = terminal
        .wait_for("the second question", |screen| screen.matches("[y/N/session/always").count() == 2)
        .await;
    assert!(screen.contains("later decides nothing"), "{screen}");
    terminal.press("y\r");
    terminal.wait_text("It is gone.").await;
    assert!(terminal.ended().await.success());
    let decided = "Decide 01K0000000000000000000APP9 approve=true digest=d9 reason=\"\"".to_owned();
    assert!(agent.requests().contains(&decided), "{:?}", agent.requests());
}

// Promises: CLI-64
#[tokio::test]
async fn of_several_calls_each_is_shown_when_it_is_asked_about() {
    let agent = FakeAgent::start();
    let (first, second) = ("01K0000000000000000000APP1", "01K0000000000000000000APP2");
    let steps = vec![
        approval_of(first, "rm -rf one"),
        approval_of(second, "rm -rf two"),
        text("Both are known."),
        Step::Decided,
        Step::Decided,
        done("Done."),
    ];
    agent.on_ask("Remove them", steps);
    let mut terminal = Terminal::start(&mut talon(&agent, &["ask", "Remove them"]), 100, 24);
    let screen = terminal.wait_text("Both are known.").await;
    assert!(screen.contains("rm -rf one") && !screen.contains("rm -rf two"), "{screen}");
    terminal.press("y\r");
    let screen = terminal.wait_text("rm -rf two").await;
    assert!(screen.find("rm -rf one") < screen.find("rm -rf two"), "{screen}");
    terminal.wait_text(&format!("exactly as shown ({second})")).await;
    terminal.press("n\r");
    assert!(terminal.ended().await.success());
    let decided: Vec<String> =
        agent.requests().into_iter().filter(|heard| heard.starts_with("Decide")).collect();
    assert!(decided[0].contains(&format!("{first} approve=true")), "{decided:?}");
    assert!(decided[1].contains(&format!("{second} approve=false")), "{decided:?}");
}

// Promises: AGENT-84
#[tokio::test]
async fn a_call_can_be_allowed_for_the_session_or_always() {
    for (word, scope) in [("s", "session"), ("always", "always")] {
        let agent = FakeAgent::start();
        let steps = vec![approval("01K0000000000000000000APP9"), Step::Decided, done("It is gone.")];
        agent.on_ask("Remove it", steps);
        let mut terminal = Terminal::start(&mut talon(&agent, &["ask", "Remove it"]), 100, 24);
        terminal.wait_text("[y/N/session/always/no REASON/later]").await;
        terminal.press(&format!("{word}\r"));
        assert!(terminal.ended().await.success());
        let decided = format!(
            "Decide 01K0000000000000000000APP9 approve=true digest=d9 reason=\"\" scope={scope} {{}}"
        );
        assert!(agent.requests().contains(&decided), "{:?}", agent.requests());
    }
}

// Promises: AGENT-85
#[tokio::test]
async fn a_question_of_the_model_is_answered_at_the_terminal() {
    let agent = FakeAgent::start();
    let question = Step::Say(chunk::Kind::Approval(Approval {
        id: "01K0000000000000000000APP9".into(),
        session_id: SESSION.into(),
        question: "Which one?\u{1b}[2J".into(),
        choices: vec!["red".into(), "blue".into()],
        state: "pending".into(),
        ..Approval::default()
    }));
    agent.on_ask("Paint it", vec![question, Step::Decided, done("It is blue.")]);
    let mut terminal = Terminal::start(&mut talon(&agent, &["ask", "Paint it"]), 100, 24);
    let screen = terminal.wait_text("Your answer").await;
    assert!(screen.contains("Which one?␛[2J") && screen.contains("2: blue"), "{screen}");
    terminal.press("2\r");
    terminal.wait_text("It is blue.").await;
    assert!(terminal.ended().await.success());
    let decided = "Decide 01K0000000000000000000APP9 approve=true digest= reason=\"\" answer=\"blue\"";
    assert!(agent.requests().contains(&decided.to_owned()), "{:?}", agent.requests());
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
    let mut terminal = Terminal::start(&mut talon(&agent, &["chat"]), 100, 60);
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
    terminal.wait_text("[y/N/session/always/no REASON/later]").await;
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

// Promises: CLI-66
#[tokio::test]
async fn a_session_is_continued_or_picked_by_its_title_at_every_width() {
    for columns in [200, 80, 20] {
        let agent = FakeAgent::start();
        let mut terminal = Terminal::start(&mut talon(&agent, &["chat", "-c"]), columns, 40);
        terminal.wait_for("the last session", |screen| screen.replace('\n', "").contains(SESSION)).await;
        types(&terminal, "/resume\r").await;
        let screen = terminal.wait_text("Which one?").await;
        assert!(screen.contains("1  What changed?"), "{screen}");
        // A title is shortened, and every session stays on one line.
        let title = match columns {
            200 => "2  Remove ␛[2Jthe <·|im_start|> build",
            80 => "2  Remove ␛[2Jthe <·|im_start|> bu…",
            _ => "2  Remove ␛[2Jt",
        };
        assert!(screen.contains(title), "{screen}");
        assert_eq!(columns > 20, screen.contains("UPDATED"), "{screen}");
        assert!(screen.lines().any(|line| line.starts_with("3  without a")), "{screen}");
        assert!(!screen.contains("<|im_start|>"), "{screen}");
        terminal.press("9\r");
        terminal
            .wait_for("the question again", |screen| {
                let (_, again) = screen.split_once("the number in front").unwrap_or_default();
                again.contains("Which one?")
            })
            .await;
        agent.on_attach(vec![Step::Decided, text("It goes on."), done("It goes on.")]);
        terminal.press("2\r");
        terminal.wait_text("exactly as show").await;
        terminal.press("later\r");
        types(&terminal, "\u{4}").await;
        assert!(terminal.ended().await.success(), "{columns}: {}", terminal.contents());
    }
}

// Promises: CLI-66
#[tokio::test]
async fn who_picks_no_session_begins_a_new_one() {
    let agent = FakeAgent::start();
    agent.on_ask("Hello", vec![done("Hi there.")]);
    let mut terminal = Terminal::start(&mut talon(&agent, &["chat", "--pick"]), 80, 24);
    terminal.wait_text("Which one?").await;
    terminal.press("\r");
    types(&terminal, "Hello\r").await;
    terminal.wait_text("Hi there.").await;
    types(&terminal, "\u{4}").await;
    assert!(terminal.ended().await.success());
    let asked = agent.requests().into_iter().find(|heard| heard.starts_with("Ask")).expect("it was asked");
    assert!(asked.contains("session= "), "{asked}");
}

// Promises: CLI-65
#[tokio::test]
async fn a_typed_message_takes_files_with_it_and_a_missing_one_is_named() {
    let agent = FakeAgent::start();
    let file = agent.file("notes.txt", "buy tea");
    let file = file.to_str().expect("our paths are text");
    let asked = format!("What is in @{file}?\n\n{file}:\n```\nbuy tea\n```");
    agent.on_ask(&asked, vec![done("Tea.")]);
    let mut terminal = Terminal::start(&mut talon(&agent, &["chat"]), 200, 24);
    types(&terminal, "see @no/such.txt\r").await;
    terminal.wait_text("there is no file no/such.txt; nothing was asked").await;
    // Tab completes the name.
    let begun = file.strip_suffix("es.txt").expect("that is its name");
    types(&terminal, &format!("What is in @{begun}\t?\r")).await;
    terminal.wait_text("Tea.").await;
    types(&terminal, "\u{4}").await;
    assert!(terminal.ended().await.success());
    assert_eq!(agent.requests().iter().filter(|heard| heard.starts_with("Ask")).count(), 1);
}

// Promises: CLI-71
#[tokio::test]
async fn a_turn_is_taken_back_and_its_message_worded_anew() {
    for columns in [200, 80, 20] {
        let agent = FakeAgent::start();
        agent.on_ask("Hello\nyou", vec![text("Hi."), done("Hi.")]);
        agent.on_ask("Hello\nyou two", vec![text("Welcome."), done("Welcome.")]);
        let mut terminal = Terminal::start(&mut talon(&agent, &["chat"]), columns, 60);
        types(&terminal, "/undo\r").await;
        terminal.wait_text("nothing to undo").await;
        types(&terminal, "Hello\\\ryou\r").await;
        terminal.wait_text("Hi.").await;
        types(&terminal, "/undo\r").await;
        let joined = |screen: &str| screen.replace('\n', "");
        terminal
            .wait_for("what was done", |screen| joined(screen).contains("what was done stays done"))
            .await;
        // The message stands in the editor, and is changed there.
        types(&terminal, " two\r").await;
        terminal.wait_text("Welcome.").await;
        types(&terminal, "\u{4}").await;
        assert!(terminal.ended().await.success());
        assert!(agent.requests().contains(&format!("UndoTurns {SESSION} turns=1")), "{:?}", agent.requests());
    }
}
