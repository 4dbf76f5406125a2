//! `talon top`: a live view of a supervisor and its plugins.
//!
//! An ordinary client of `host.sock`. It is a separate program, so that the privileged one does not link a
//! terminal library. `talon top` finds the socket and executes this program.
//!
//! ```text
//! host.sock ── feed.rs ── Update ──► model.rs ──► view/ ──► screen.rs ── terminal
//!              (GetStatus, WatchEvents, Logs)      ▲   (pure)      │
//!                                                  └── Command ── keys.rs
//! ```

mod feed;
mod host;
mod keys;
mod model;
mod once;
mod order;
mod rates;
mod reading;
#[cfg(test)]
mod scenes;
mod screen;
mod timeline;
mod view;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::feed::Feed;
use crate::host::Host;
use crate::model::Model;
use crate::order::SortKey;
use crate::view::theme::Theme;

/// Exit codes, the same as those of `talon`.
const USAGE: u8 = 2;
const UNREACHABLE: u8 = 5;
const FAILED: u8 = 70;

/// A supervisor and its plugins, live. Started by `talon top`.
#[derive(Debug, Parser)]
#[command(name = "talon-top", version)]
struct Args {
    /// The supervisor's socket.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// How often to query the supervisor, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    interval_ms: u64,
    /// Only plugins whose name or state contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// The sort key.
    #[arg(long, value_enum, default_value_t = SortKey::Severity)]
    sort: SortKey,
    /// Print one snapshot and exit: needs no terminal.
    #[arg(long)]
    once: bool,
    /// Print JSON; with --once.
    #[arg(long, requires = "once")]
    json: bool,
    /// Without colours.
    #[arg(long)]
    no_color: bool,
}

fn main() -> ExitCode {
    // First: the screen's hook restores the terminal and calls this one.
    talon_sanitize::print_panics_sanitized();
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(FAILED, &format!("cannot start the runtime: {error}; try again")),
    };
    let code = runtime.block_on(run(args));
    // A thread may still block in a read of the terminal; do not wait for it.
    runtime.shutdown_background();
    code
}

async fn run(args: Args) -> ExitCode {
    let host = Host::new(args.socket);
    let mut model = Model::new(Duration::from_millis(args.interval_ms));
    (model.filter, model.sort_key) = (args.filter, args.sort);
    if args.once {
        return match once::read(&host, &mut model).await {
            Ok(()) => print(&model, args.json),
            Err(status) => fail(UNREACHABLE, &host.explain(&status)),
        };
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return fail(USAGE, "this is no terminal: use `talon top --once`, which prints one picture");
    }
    // `talon` has decided whether to use colours; without this the library would check the environment again.
    crossterm::style::force_color_output(!args.no_color);
    let feed = Feed::start(&host, model.interval);
    match screen::run(model, feed, Theme { color: !args.no_color }).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(FAILED, &format!("cannot use the terminal: {error}; try `talon top --once`")),
    }
}

/// Prints to standard output; a closed pipe is not an error.
fn print(model: &Model, json: bool) -> ExitCode {
    let mut out = io::stdout().lock();
    let written = if json {
        writeln!(out, "{:#}", once::json(model))
    } else {
        once::text(model).iter().try_for_each(|line| writeln!(out, "{line}"))
    };
    match written.and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(FAILED, &format!("cannot write the output: {error}")),
    }
}

/// Prints one line to stderr; ignores errors, as there is nowhere to report them.
fn fail(code: u8, text: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "talon: {text}");
    ExitCode::from(code)
}

impl ValueEnum for SortKey {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [SortKey; order::ALL.len()] = {
            let mut all = [SortKey::Severity; order::ALL.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = order::ALL[at].0;
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.as_str()))
    }
}
