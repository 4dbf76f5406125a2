//! `make demo`: shows Talon's main features on real input, in plain words. Every step checks what it shows,
//! and the program exits with 0 only when all checks passed.

mod agent;
mod command;
mod repository_copy;
mod show;
mod steps;

use std::process::ExitCode;

use show::Show;

#[tokio::main]
async fn main() -> ExitCode {
    let mut show = Show::new();
    match steps::run(&mut show).await {
        Ok(()) => show.end(),
        Err(error) => {
            show.failed(&error);
            ExitCode::FAILURE
        }
    }
}
