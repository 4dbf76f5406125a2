//! Runs other people's programs with Talon, as `tests/interop` lists them, and writes the table.
//!
//! ```text
//! talon-interop [--table FILE] [--servers] [--clients] [--only NAME,…]
//! ```
//!
//! Packages are installed below `target/interop` and stay there. It fails when a row differs from its list.

mod choice;
mod run;

use std::process::ExitCode;

use tokio::task::LocalSet;

#[tokio::main]
async fn main() -> ExitCode {
    let done = match choice::Choice::parse(std::env::args().skip(1)) {
        // The harness panics when something is amiss, which ends a row and not the run.
        Ok(choice) => LocalSet::new().run_until(Box::pin(run::run(&choice))).await,
        Err(error) => Err(error),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
