//! The commands for authors: `check`, `run`, `test`, `repl`. They run scripts in this process, with the limits that the plugin gives them.

mod canned_host;
mod check;
mod diff;
mod files;
mod repl;
mod run;
mod script_options;
mod test;
mod watchdog;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Check, run and test Lua scripts.
#[derive(Debug, Parser)]
#[command(name = "talon-lua", version)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile scripts, run their top level, and name the functions that are called.
    Check(check::CheckArgs),
    /// Call one function of a script, and show what it changed.
    Run(run::RunArgs),
    /// Run the functions `test_*` of the files NAME_test.lua, each beside its script.
    Test(test::TestArgs),
    /// Evaluate lines of JSON, for `talon lua repl`.
    Repl(repl::ReplArgs),
}

/// Runs the command of these arguments.
pub(crate) fn run() -> ExitCode {
    let done = match CommandLine::parse().command {
        Command::Check(args) => check::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Repl(args) => repl::run(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
