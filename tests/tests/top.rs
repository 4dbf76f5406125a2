//! `talon top` in a real terminal, over a real supervisor.

use std::process::Command;

use rustix::process::Signal;
use talon_tests::{Builder, Supervisor, Terminal, program};

/// What a program writes when it takes the whole screen.
const ENTER: &str = "\u{1b}[?1049h";

async fn supervisor() -> Supervisor {
    Builder::new().misbehave(&[], "").plugin("hello", &program("hello"), &[], "").start().await
}

fn top(supervisor: &Supervisor, args: &[&str]) -> Command {
    let mut command = Command::new(program("talon"));
    command.arg("--socket").arg(supervisor.socket()).args(["top", "--interval", "100ms"]).args(args);
    command.env_remove("NO_COLOR");
    command
}

/// Where the cursor stands.
fn selected(contents: &str) -> String {
    let line = contents.lines().find(|line| line.starts_with('▸')).unwrap_or_default();
    line.trim_start_matches('▸').split_whitespace().next().unwrap_or_default().to_owned()
}

// Promises: CLI-30
#[tokio::test]
async fn it_shows_what_happens_and_does_what_the_keys_say() {
    let supervisor = supervisor().await;
    let mut terminal = Terminal::start(&mut top(&supervisor, &[]), 80, 24);
    let first =
        terminal.wait_for("both plugins", |text| text.contains("hello") && text.contains("misbehave")).await;
    assert!(first.contains("serving  2 plugins: 2 ready"), "{first}");
    terminal.press("n");
    terminal.wait_text("PLUGIN▾").await;
    // The end of the table, and back up: arrows as a terminal sends them.
    terminal.press("G");
    terminal.wait_for("the last plugin", |text| selected(text) == "misbehave").await;
    terminal.press("\u{1b}[A");
    terminal.wait_for("the one above", |text| selected(text) == "hello").await;
    terminal.press("?");
    terminal.wait_text("this help").await;
    terminal.press("?");
    terminal.wait_for("no help", |text| !text.contains("this help")).await;
    // A filter takes letters that are keys otherwise, q among them.
    terminal.press("/misq");
    terminal.wait_text("no plugin has that").await;
    terminal.press("\u{7f}\r");
    terminal.wait_for("one plugin", |text| selected(text) == "misbehave" && !text.contains("hello")).await;
    terminal.press("\r");
    terminal.wait_text("what happened").await;
    // What it offers, and what happens to it, comes while it is looked at.
    terminal.wait_text("grpc_error").await;
    supervisor
        .client
        .try_call("misbehave", "log", &[("text", "a line of its own")])
        .await
        .expect("it answers");
    let _ = supervisor.client.try_call("misbehave", "grpc_error", &[]).await;
    terminal.wait_text("calls        2 (").await;
    terminal.press("q");
    assert!(terminal.ended().await.success());
    terminal.wait_restored().await;
}

// Promises: CLI-30
#[tokio::test]
async fn it_goes_on_in_another_size() {
    let supervisor = supervisor().await;
    let mut terminal = Terminal::start(&mut top(&supervisor, &[]), 80, 24);
    terminal.wait_text("MEMORY").await;
    assert!(!terminal.contents().contains("DROPPED"));
    terminal.resize(150, 40);
    terminal.wait_text("DROPPED").await;
    terminal.resize(30, 5);
    terminal
        .wait_for("what is left of it", |text| !text.contains("DROPPED") && text.contains("q quit"))
        .await;
    terminal.press("q");
    assert!(terminal.ended().await.success());
    terminal.wait_restored().await;
}

// Promises: CLI-31
#[tokio::test]
async fn a_signal_and_control_c_give_the_terminal_back() {
    let supervisor = supervisor().await;
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut terminal = Terminal::start(&mut top(&supervisor, &[]), 80, 24);
        terminal.wait_text("hello").await;
        assert!(!terminal.not_restored().is_empty(), "it is in use");
        terminal.signal(signal);
        assert!(terminal.ended().await.success(), "{signal:?}");
        terminal.wait_restored().await;
    }
    let mut terminal = Terminal::start(&mut top(&supervisor, &[]), 80, 24);
    terminal.wait_text("hello").await;
    terminal.press("\u{3}");
    assert!(terminal.ended().await.success());
    terminal.wait_restored().await;
}

// Promises: CLI-32
#[tokio::test]
async fn a_supervisor_that_dies_is_told_and_its_successor_is_found() {
    let supervisor = supervisor().await;
    let mut terminal = Terminal::start(&mut top(&supervisor, &[]), 80, 24);
    terminal.wait_text("2 ready").await;
    let left = supervisor.end(nix::sys::signal::Signal::SIGKILL).await.left;
    terminal.wait_text("the supervisor is gone").await;
    terminal.wait_text("no supervisor answers").await;
    let next = Builder::on_leftovers(left).misbehave(&[], "").start().await;
    terminal.wait_for("the next one", |text| text.contains("1 ready") && !text.contains("is gone")).await;
    terminal.wait_text("restarted, seen").await;
    next.stop().await;
    terminal.wait_text("the supervisor is gone").await;
    terminal.press("q");
    assert!(terminal.ended().await.success(), "keys are heard without a supervisor");
    terminal.wait_restored().await;
}

// Promises: CLI-34
#[tokio::test]
async fn without_colour_there_is_none() {
    let supervisor = supervisor().await;
    let colours = async |args: &[&str], variable: Option<&str>| {
        let mut command = top(&supervisor, args);
        if let Some(value) = variable {
            command.env("NO_COLOR", value);
        }
        let mut terminal = Terminal::start(&mut command, 80, 24);
        terminal.wait_text("2 ready").await;
        let coloured = terminal.look(|screen| {
            let cells = (0..24).flat_map(|row| (0..80).map(move |column| (row, column)));
            cells.filter_map(|(row, column)| screen.cell(row, column)).any(|cell| {
                !matches!(cell.fgcolor(), vt100::Color::Default)
                    || !matches!(cell.bgcolor(), vt100::Color::Default)
            })
        });
        terminal.press("q");
        terminal.ended().await;
        coloured
    };
    assert!(colours(&[], None).await);
    assert!(!colours(&[], Some("1")).await);
    assert!(!colours(&["--color", "never"], None).await);
    assert!(colours(&["--color", "always"], Some("1")).await);
}

// Promises: CLI-33
#[tokio::test]
async fn a_plugin_does_not_draw_on_the_terminal() {
    let supervisor = supervisor().await;
    let mut terminal = Terminal::start(&mut top(&supervisor, &["--filter", "misbehave"]), 120, 40);
    // The filter has its name as well, before there is a row of it.
    terminal.wait_for("its row", |text| selected(text) == "misbehave").await;
    terminal.press("\r");
    terminal.wait_text("what happened").await;
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[5;5Hdrawn";
    supervisor.client.try_call("misbehave", "log", &[("text", hostile)]).await.expect("it answers");
    let shown = terminal.wait_text("drawn").await;
    assert!(shown.contains("␛[2J") && shown.contains("misbehave"), "{shown}");
    let written = String::from_utf8_lossy(&terminal.written()).into_owned();
    assert!(!written.contains("\u{1b}]0;") && !written.contains("\u{1b}[5;5Hdrawn"), "{written:?}");
    terminal.press("q");
    assert!(terminal.ended().await.success());
}

// Promises: CLI-31
#[tokio::test]
async fn in_the_background_the_terminal_is_the_shells() {
    let supervisor = supervisor().await;
    // A shell with job control, as the one that a person has.
    let line = format!(
        "set -m; {} --socket {} top --interval 100ms; echo in the $((40 + 2)) shell; fg; echo over $?",
        program("talon").display(),
        supervisor.socket().display()
    );
    let mut terminal = Terminal::start(Command::new("sh").args(["-c", &line]), 80, 24);
    let entered = |terminal: &Terminal, times: usize| {
        let written = String::from_utf8_lossy(&terminal.written()).into_owned();
        written.matches(ENTER).count() == times && terminal.contents().contains("2 ready")
    };
    terminal.wait_for("its screen", |_| entered(&terminal, 1)).await;
    terminal.press("\u{1a}");
    // Not the picture that was there before: a key pressed too early is the shell's.
    terminal.wait_for("its screen again", |_| entered(&terminal, 2)).await;
    terminal.press("q");
    terminal.ended().await;
    terminal.wait_restored().await;
    let written = String::from_utf8_lossy(&terminal.written()).into_owned();
    let (in_shell, back) = (written.find("in the 42 shell"), written.rfind(ENTER));
    assert!(in_shell.is_some() && in_shell < back && written.contains("over 0"), "{written:?}");
    assert!(!written.contains("\u{1b}[6n"), "it asks the terminal for what it need not know: {written:?}");
}

// Promises: CLI-34
#[tokio::test]
async fn without_a_terminal_there_is_one_picture() {
    let supervisor = supervisor().await;
    let live = supervisor.cli(&["top"]).await;
    assert_eq!(live.status.code(), Some(2), "{live:?}");
    assert!(String::from_utf8_lossy(&live.stderr).contains("--once"), "{live:?}");
    for order in ["worst", "name", "calls", "errors", "latency", "cpu", "memory", "in-flight", "log-lines"] {
        let once = supervisor.cli(&["top", "--once", "--interval", "100ms", "--sort", order]).await;
        let text = String::from_utf8_lossy(&once.stdout).into_owned();
        assert!(once.status.success() && text.starts_with("PLUGIN"), "{order}: {once:?}");
        assert!(text.contains("misbehave") && !text.contains('\u{1b}'), "{text}");
    }
    let json = supervisor.cli(&["top", "--once", "--output", "json", "--interval", "100ms"]).await;
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).expect("one value");
    assert_eq!(value["plugins"].as_array().map(Vec::len), Some(2), "{value}");
    assert_eq!(value["total"]["calls_per_second"], 0.0, "{value}");
}
