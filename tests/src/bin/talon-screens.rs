//! Makes the pictures in `docs/images`: `talon top` and `talon status` of a real supervisor with busy
//! plugins.
//!
//! Usage: talon-screens DIR

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use talon_tests::screenshot::svg;
use talon_tests::{Builder, Supervisor, Terminal, example, program};
use tokio::task::JoinSet;

/// The size of the window.
const WINDOW: (u16, u16) = (120, 36);
/// How long the plugins work before the pictures are taken: long enough for percentiles and some deaths.
const WORK: Duration = Duration::from_secs(12);

#[tokio::main]
async fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: talon-screens DIR");
        return ExitCode::from(2);
    };
    match run(&dir).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("talon-screens: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir)?;
    let supervisor = Arc::new(supervisor().await);
    let _work = work(&supervisor);
    let mut top = talon(&supervisor);
    top.args(["top", "--interval", "2s"]);
    let mut terminal = Terminal::start(&mut top, WINDOW.0, WINDOW.1);
    terminal.wait_text("code-search").await;
    tokio::time::sleep(WORK).await;
    picture(&terminal, &dir.join("top.svg"), "talon top: plugins, the worst first")?;
    terminal.press("/code-s\r\r");
    terminal.wait_text("what happened").await;
    terminal.press("\u{1b}");
    tokio::time::sleep(WORK / 4).await;
    picture(&terminal, &dir.join("top-plugin.svg"), "talon top: one plugin whole")?;
    terminal.press("q");
    terminal.ended().await;
    let mut status = talon(&supervisor);
    let mut terminal = Terminal::start(status.arg("status"), 100, 2 * WINDOW.1);
    terminal.ended().await;
    terminal.wait_text("NEEDS ATTENTION").await;
    picture(&terminal, &dir.join("status.svg"), "talon status")?;
    Ok(())
}

fn talon(supervisor: &Supervisor) -> Command {
    let mut command = Command::new(program("talon"));
    command.arg("--socket").arg(supervisor.socket()).env_remove("NO_COLOR");
    command
}

fn picture(terminal: &Terminal, path: &Path, title: &str) -> anyhow::Result<()> {
    std::fs::write(path, terminal.look(|screen| svg(screen, title)))?;
    println!("{}", path.display());
    Ok(())
}

/// A supervisor with something to show: plugins in two languages, one that fails, one that dies now and then.
async fn supervisor() -> Supervisor {
    let root = "config: { root: /usr/include }\nsandbox: { fs: { read: [/usr/include] } }\ninstances: 2";
    Builder::new()
        .plugin("hello", &program("hello"), &[], "")
        .plugin("code-search", &program("code-search"), &[], root)
        .plugin("notes", &program("notes"), &[], "")
        .linked(&example("csv-query"), "csv-query")
        .plugin("flaky", &program("misbehave"), &[], "backoff_initial: 100ms\nmax_restarts: 1000")
        .plugin("jira", Path::new("/bin/sleep"), &["1000"], "start_timeout: 2s\nmax_restarts: 0")
        .start()
        .await
}

/// Calls of different plugins at different rates, until it is dropped.
fn work(supervisor: &Arc<Supervisor>) -> JoinSet<()> {
    type Call = (&'static str, &'static str, &'static [(&'static str, &'static str)], u64);
    const CALLS: [Call; 8] = [
        ("hello", "greet", &[("name", "World")], 9),
        ("notes", "list", &[], 70),
        ("code-search", "search", &[("pattern", "struct [a-z]+_ops")], 25),
        ("code-search", "search", &[("pattern", "define")], 40),
        ("csv-query", "query", &[("sql", "select name, moons from planets order by moons desc")], 55),
        ("flaky", "echo", &[("text", "hi")], 30),
        ("flaky", "error", &[("text", "not today")], 400),
        ("flaky", "exit", &[], 5000),
    ];
    let mut tasks = JoinSet::new();
    for (plugin, action, args, every_ms) in CALLS {
        let supervisor = supervisor.clone();
        tasks.spawn(async move {
            let mut pace = tokio::time::interval(Duration::from_millis(every_ms));
            pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
            loop {
                pace.tick().await;
                // The result shows in the pictures.
                let _ = supervisor.client.try_call(plugin, action, args).await;
            }
        });
    }
    tasks
}
