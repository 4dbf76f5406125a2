//! What an answer looks like in a real terminal: styles, links, calls that run, and terminals that take none of it.

use std::process::{Command, Stdio};

use talon_proto::agent::{Approval, Done, Text, ToolCall, ToolProgress, ToolResult, chunk};
use talon_tests::agent::{FakeAgent, Step};
use talon_tests::{Terminal, program};
use tokio::io::AsyncReadExt as _;

fn say(kind: chunk::Kind) -> Step {
    Step::Say(kind)
}

fn text(text: &str) -> Step {
    say(chunk::Kind::Text(Text { text: text.into(), ..Text::default() }))
}

fn done(text: &str) -> Step {
    let (provider, model) = ("ollama".into(), "llama3.2".into());
    say(chunk::Kind::Done(Done { text: text.into(), provider, model, ..Done::default() }))
}

fn call(id: &str, action: &str) -> Step {
    let (call_id, plugin, action) = (id.into(), "git".into(), action.into());
    say(chunk::Kind::ToolCall(ToolCall { call_id, plugin, action, ..ToolCall::default() }))
}

fn result(id: &str, action: &str) -> Step {
    let (call_id, tool) = (id.into(), format!("git__{action}"));
    say(chunk::Kind::ToolResult(ToolResult { call_id, tool, success: true, ..ToolResult::default() }))
}

fn talon(agent: &FakeAgent, args: &[&str]) -> Command {
    let mut command = Command::new(program("talon"));
    command.arg("--socket").arg(agent.socket()).args(args);
    command.env("XDG_STATE_HOME", agent.scratch.join("state")).env("LANG", "C.UTF-8");
    for variable in ["NO_COLOR", "LC_ALL", "LC_CTYPE", "TALON_SCREEN_READER"] {
        command.env_remove(variable);
    }
    command
}

/// Types where there is an editor.
async fn types(terminal: &Terminal, keys: &str) {
    terminal.wait_for("an editor", |_| !terminal.not_restored().is_empty()).await;
    terminal.press(keys);
}

const ANSWER: [&str; 5] =
    ["# Wh", "y\nIt is **bo", "ld** `co", "de`.\n```rust\nfn ma", "in() {}\n```\nSee https://example.com/x."];

fn answering() -> FakeAgent {
    let agent = FakeAgent::start();
    let steps = ANSWER.map(text).into_iter().chain([done(&ANSWER.concat())]).collect();
    agent.on_ask("Why?", steps);
    agent
}

/// Whether the first place of this text on the screen satisfies the predicate.
fn at_text(terminal: &Terminal, text: &str, is: impl Fn(&vt100::Cell) -> bool) -> bool {
    terminal.look(|screen| {
        let (rows, columns) = screen.size();
        let (rows, columns) = (rows.get(), columns.get());
        let lines: Vec<String> = screen.rows(0, columns).collect();
        (0..rows).zip(lines).any(|(row, line)| {
            let place = line.find(text).and_then(|at| u16::try_from(line[..at].chars().count()).ok());
            place.and_then(|column| screen.cell(row, column)).is_some_and(&is)
        })
    })
}

// Promises: CLI-69
#[tokio::test]
async fn an_answer_has_styles_and_keeps_every_character() {
    for columns in [200, 80, 20] {
        let agent = answering();
        let mut terminal = Terminal::start(&mut talon(&agent, &["ask", "Why?"]), columns, 40);
        assert!(terminal.ended().await.success(), "{}", terminal.contents());
        let screen = terminal.wait_text("ollama/llama3.2").await;
        assert!(screen.replace('\n', "").contains(&ANSWER.concat().replace('\n', "")), "{screen}");
        assert!(at_text(&terminal, "Why", vt100::Cell::bold), "{screen}");
        assert!(at_text(&terminal, "bold", vt100::Cell::bold), "{screen}");
        assert!(at_text(&terminal, "It is", |cell| !cell.bold()), "{screen}");
        let is_colored = |cell: &vt100::Cell| cell.fgcolor() != vt100::Color::Default;
        for colored in ["code", "fn main"] {
            assert!(at_text(&terminal, colored, is_colored), "{colored}: {screen}");
        }
        assert!(at_text(&terminal, "https", vt100::Cell::underline), "{screen}");
        let written = String::from_utf8_lossy(&terminal.written()).into_owned();
        assert!(written.contains("\u{1b}]8;;https://example.com/x\u{1b}\\"), "{written:?}");
    }
}

// Promises: CLI-69
#[tokio::test]
async fn where_colours_are_not_wanted_the_text_is_the_same() {
    let agent = answering();
    let mut command = talon(&agent, &["ask", "Why?"]);
    let mut terminal = Terminal::start(command.env("NO_COLOR", "1"), 80, 40);
    assert!(terminal.ended().await.success());
    let screen = terminal.wait_text("ollama/llama3.2").await;
    assert!(screen.contains(&ANSWER.concat()), "{screen}");
    let written = String::from_utf8_lossy(&terminal.written()).into_owned();
    assert!(!written.contains("\u{1b}[1m") && !written.contains("\u{1b}[3"), "{written:?}");
    // In a pipe it has no links either.
    let mut command = tokio::process::Command::from(talon(&agent, &["ask", "Why?"]));
    let output = command.stdin(Stdio::null()).output().await.expect("talon starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), ANSWER.concat() + "\n");
}

// Promises: CLI-69
#[tokio::test]
async fn a_screen_reader_and_a_terminal_without_utf8_get_words() {
    for (variable, value) in [("TALON_SCREEN_READER", "1"), ("LC_ALL", "C")] {
        let agent = FakeAgent::start();
        agent.on_ask("Look", vec![call("1", "log"), result("1", "log"), text("Seen."), done("Seen.")]);
        let mut command = talon(&agent, &["ask", "Look"]);
        let mut terminal = Terminal::start(command.env(variable, value).env("NO_COLOR", "1"), 80, 24);
        assert!(terminal.ended().await.success());
        let screen = terminal.wait_text("ollama/llama3.2").await;
        assert!(screen.contains("calls git.log") && screen.contains("done: git.log"), "{screen}");
        assert!(screen.is_ascii(), "{screen}");
        if variable == "TALON_SCREEN_READER" {
            let written = String::from_utf8_lossy(&terminal.written()).into_owned();
            assert!(!written.contains('\u{1b}'), "{written:?}");
        }
    }
}

// Promises: CLI-70
#[tokio::test]
async fn calls_that_run_are_shown_with_their_elapsed_time() {
    for columns in [200, 80, 20] {
        let agent = FakeAgent::start();
        let progress =
            ToolProgress { call_id: "2".into(), progress: 1.0, total: Some(4.0), message: "reading".into() };
        let steps = vec![
            call("1", "log"),
            call("2", "diff"),
            say(chunk::Kind::ToolProgress(progress)),
            Step::Decided,
            result("1", "log"),
            Step::Decided,
            result("2", "diff"),
            text("Seen."),
            done("Seen."),
        ];
        agent.on_ask("Look", steps);
        let mut command = talon(&agent, &["ask", "Look"]);
        let mut terminal = Terminal::start(command.env("NO_COLOR", "1"), columns, 40);
        let is_running =
            |screen: &str, name: &str| screen.lines().any(|line| line.contains(&format!("0s {name}")));
        terminal
            .wait_for("both calls", |screen| {
                is_running(screen, "git.log") && is_running(screen, "git.diff: 25")
            })
            .await;
        agent.continue_turn();
        let screen = terminal.wait_text("✓ git.log").await;
        assert!(!is_running(&screen, "git.log"), "{screen}");
        terminal.wait_for("the other call", |screen| is_running(screen, "git.diff: 25")).await;
        agent.continue_turn();
        assert!(terminal.ended().await.success());
        let screen = terminal.wait_text("ollama/llama3.2").await;
        assert!(!is_running(&screen, "git.diff") && screen.contains("✓ git.diff"), "{screen}");
    }
}

// Promises: CLI-70
#[tokio::test]
async fn a_command_is_listed_hinted_at_and_completed() {
    for columns in [200, 80, 20] {
        let agent = FakeAgent::start();
        let mut terminal = Terminal::start(&mut talon(&agent, &["chat"]), columns, 40);
        terminal.wait_for("an editor", |_| !terminal.not_restored().is_empty()).await;
        terminal.press("/co\t\t");
        let screen = terminal.wait_text("/context").await;
        assert!(screen.contains("/cost") && screen.contains("/compact"), "{screen}");
        terminal.press("nt");
        terminal.wait_for("the hint", |_| at_text(&terminal, "> /cont", |_| true)).await;
        let hint = if columns > 20 { "/context  what the model" } else { "/context  what th" };
        let screen = terminal.wait_text(hint).await;
        let is_cut = |line: &str| !line.starts_with('>') || line.chars().count() < usize::from(columns);
        assert!(screen.lines().all(is_cut), "{screen}");
        // The right arrow takes over what is missing.
        terminal.press("\u{1b}[C\r");
        terminal.wait_for("the command", |screen| screen.replace('\n', "").contains("no question yet")).await;
        types(&terminal, "\u{4}").await;
        assert!(terminal.ended().await.success());
    }
}

// Promises: CLI-44
#[tokio::test]
async fn a_paste_that_is_too_long_is_refused_and_the_chat_goes_on() {
    let agent = FakeAgent::start();
    agent.on_ask("Hello", vec![text("Hi."), done("Hi.")]);
    let mut terminal = Terminal::start(&mut talon(&agent, &["chat"]), 80, 24);
    terminal.wait_for("an editor", |_| !terminal.not_restored().is_empty()).await;
    let line = "paste ".repeat(20) + "\r";
    let paste = line.repeat((1 << 20) / line.len());
    terminal.press(&format!("\u{1b}[200~{paste}\u{1b}[201~\r"));
    terminal.wait_text("a message has at most 256 KiB").await;
    types(&terminal, "Hello\r").await;
    terminal.wait_text("ollama/llama3.2").await;
    types(&terminal, "\u{4}").await;
    assert!(terminal.ended().await.success());
    assert_eq!(agent.requests().iter().filter(|heard| heard.starts_with("Ask")).count(), 1);
}

// Promises: CLI-69
#[tokio::test]
async fn a_reader_that_goes_away_ends_an_answer_without_an_error() {
    let agent = FakeAgent::start();
    let page = "a line of an answer\n".repeat(10_000);
    agent.on_ask("Go on", vec![text(&page), text(&page), done(&(page.clone() + &page))]);
    let mut command = tokio::process::Command::from(talon(&agent, &["ask", "Go on", "--quiet"]));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("talon starts");
    let mut first = [0; 6];
    let mut stdout = child.stdout.take().expect("it is piped");
    stdout.read_exact(&mut first).await.expect("it answers");
    drop(stdout);
    let output = child.wait_with_output().await.expect("it ends");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

// Promises: CLI-72
#[tokio::test]
async fn what_is_typed_while_an_answer_streams_has_a_row_of_its_own() {
    for columns in [200, 80, 20] {
        let agent = FakeAgent::start();
        let lines: String = (1..=40).map(|line| format!("line {line}\n")).collect();
        let steps = vec![text(&lines), Step::Decided, text("The end."), done(&(lines.clone() + "The end."))];
        agent.on_ask("Count", steps);
        agent.on_ask("One", vec![text("Answer 1."), done("Answer 1.")]);
        agent.on_ask("Two three", vec![text("Answer 2."), done("Answer 2.")]);
        let mut command = talon(&agent, &["chat"]);
        let mut terminal = Terminal::start(command.env("NO_COLOR", "1"), columns, 24);
        types(&terminal, "Count\r").await;
        let last_row = |screen: &str| screen.lines().nth(23).unwrap_or_default().trim_end().to_owned();
        terminal.wait_for("the area", |screen| screen.contains("line 40") && last_row(screen) == ">").await;
        terminal.press("One\rTwo");
        terminal.wait_for("what was typed", |screen| last_row(screen) == "[1 queued] > Two").await;
        agent.continue_turn();
        let screen = terminal.wait_text("Answer 1.").await;
        assert!(screen.contains("The end.") && screen.contains("> One"), "{screen}");
        // What was not finished goes on.
        types(&terminal, " three\r").await;
        terminal.wait_text("Answer 2.").await;
        types(&terminal, "\u{4}").await;
        assert!(terminal.ended().await.success(), "{}", terminal.contents());
        terminal.wait_restored().await;
    }
}

// Promises: CLI-72
#[tokio::test]
async fn what_was_typed_before_a_question_of_a_chat_is_no_answer_to_it() {
    let agent = FakeAgent::start();
    let approval = Approval {
        id: "01K0000000000000000000APP9".into(),
        plugin: "shell".into(),
        action: "run".into(),
        state: "pending".into(),
        digest: "d9".into(),
        ..Approval::default()
    };
    let ask = say(chunk::Kind::Approval(approval));
    agent.on_ask("Remove it", vec![text("One moment.\n"), Step::Decided, ask, Step::Decided, done("Gone.")]);
    let mut command = talon(&agent, &["chat"]);
    let mut terminal = Terminal::start(command.env("NO_COLOR", "1"), 80, 24);
    types(&terminal, "Remove it\r").await;
    terminal.wait_text("One moment.").await;
    terminal.press("y");
    terminal.wait_text("> y").await;
    // Another client's decision lets the turn continue, to its question.
    agent.continue_turn();
    terminal.wait_text("exactly as shown").await;
    assert!(!agent.requests().iter().any(|heard| heard.starts_with("Decide")), "{:?}", agent.requests());
    terminal.press("n\r");
    terminal.wait_text("ollama/llama3.2").await;
    let decided = agent.requests().into_iter().find(|heard| heard.starts_with("Decide"));
    assert!(decided.is_some_and(|decided| decided.contains("approve=false")));
    // It stands in the editor.
    types(&terminal, "\u{15}\u{4}").await;
    assert!(terminal.ended().await.success());
}
