//! `talon watch`: follows one user's files, shells and repositories, and reports what its detectors find to
//! the agent, for the shadow loop.
//!
//! It runs as the user whose work it looks at, is off until its configuration says otherwise, and asks no
//! model. It is a separate program, so that `talon` links no watcher of files.
//!
//! ```text
//! files/ ───┐
//! git/ ─────┤ Event ──► detection.rs ── detect/* ──► Observation ──► queue.rs ──► agent.rs ── agent.sock
//! shell/ ───┤              (excerpt.rs, talon-redact)
//! checker.rs┘
//! ```

mod agent;
mod checker;
mod config;
mod desktop;
mod detect;
mod detection;
mod event;
mod excerpt;
mod files;
mod ghost_stream;
mod git;
mod last_look;
mod limits;
mod notice;
mod observation;
mod prompt_file;
mod queue;
mod runtime_dir;
mod seen_commits;
mod shell;
#[cfg(test)]
mod simulated_day_tests;
mod spool;
mod watch;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::Config;
use crate::notice::say;
use crate::watch::Target;

/// Exit codes, the same as those of `talon`.
const USAGE: u8 = 2;
const FAILED: u8 = 70;

/// Follows files, shell and git, and reports findings to the agent. Started by `talon watch`.
#[derive(Debug, Parser)]
#[command(name = "talon-watch", version)]
struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The configuration [default: ~/.config/talon/watch.yaml].
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// The agent's socket.
    #[arg(long, value_name = "PATH", default_value = "/run/talon/agent.sock")]
    socket: PathBuf,
    /// Print what would be sent, as a JSON object a line, and send nothing.
    #[arg(long)]
    dry_run: bool,
    /// Check the configuration, print what it watches and runs, and exit.
    #[arg(long, conflicts_with = "dry_run")]
    check: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Report(shell::ReportArgs),
}

fn main() -> ExitCode {
    talon_sanitize::print_panics_sanitized();
    end_with_any_thread();
    let args = Args::parse();
    if let Some(Verb::Report(args)) = args.verb {
        shell::report(args);
        return ExitCode::SUCCESS;
    }
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, text)) => {
            say(text);
            ExitCode::from(code)
        }
    }
}

/// A watcher without one of its threads would go on and see nothing: it ends, and its service manager starts it
/// again.
fn end_with_any_thread() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::exit(i32::from(FAILED));
    }));
}

fn run(args: Args) -> Result<(), (u8, String)> {
    let usage = |error: &dyn std::fmt::Display| (USAGE, error.to_string());
    let path = match args.config {
        Some(path) => path,
        None => config::default_path().map_err(|error| usage(&error))?,
    };
    let config = config::load(&path).map_err(|error| usage(&error))?;
    let (roots, problems) = config::checked(&config);
    for problem in &problems {
        say(problem);
    }
    if !problems.is_empty() {
        return Err((USAGE, format!("{} cannot be used as it is", path.display())));
    }
    if args.check {
        return print_check(&path, &config, &roots)
            .map_err(|error| (FAILED, format!("cannot write the output: {error}")));
    }
    if !config.enabled {
        say(format!("nothing is watched: shadow.enabled is false in {}", path.display()));
        return Ok(());
    }
    for checker in &config.checkers {
        say(format!(
            "runs `{}` in {} after a file is saved",
            checker.command.join(" "),
            checker.directory.display()
        ));
    }
    let failed = |text: String| (FAILED, text);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(format!("cannot start the runtime: {error}")))?;
    let target = if args.dry_run { Target::DryRun } else { Target::Agent(args.socket) };
    runtime.block_on(watch::run(config, roots, target)).map_err(failed)
}

/// What `--check` prints.
fn print_check(path: &Path, config: &Config, roots: &[PathBuf]) -> std::io::Result<()> {
    let shown = |text: &dyn std::fmt::Display| talon_sanitize::Raw::of(text).line();
    let mut out = std::io::stdout().lock();
    let state = if config.enabled { "on" } else { "off: shadow.enabled is false" };
    writeln!(out, "{} is well-formed; the watcher is {state}", shown(&path.display()))?;
    for root in roots {
        writeln!(out, "watches {}", shown(&root.display()))?;
    }
    for checker in &config.checkers {
        let command = checker.command.join(" ");
        writeln!(
            out,
            "runs    {} in {} after a file is saved",
            shown(&command),
            shown(&checker.directory.display())
        )?;
    }
    if let Some(history) = &config.watchers.shell.history_file {
        writeln!(out, "reads   {}", shown(&history.display()))?;
    }
    if config.spool
        && let Some(directory) = runtime_dir::state_directory()
    {
        writeln!(out, "keeps   what waits for the agent in {}", shown(&directory.display()))?;
    }
    if config.desktop_notifications {
        writeln!(out, "shows   ghosts on the desktop with notify-send")?;
    }
    if config.watchers.shell.enabled {
        match runtime_dir::shell_socket() {
            Some(socket) => writeln!(out, "serves  {} for shells", shown(&socket.display()))?,
            None => writeln!(out, "serves  no shells: XDG_RUNTIME_DIR is not set")?,
        }
    }
    out.flush()
}
