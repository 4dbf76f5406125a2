//! Runs commands in a scratch directory.

mod kept;
mod run;
mod settings;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use talon_sdk::Plugin;

use crate::settings::{Config, Scratch};

fn main() -> ExitCode {
    Plugin::new("shell")
        .description("Runs shell commands in a scratch directory.")
        // What it destroys is its own scratch. Commands that destroy on purpose, `rm -rf` and the like, ask all the same, by pattern.
        .tool(run::run().destructive(false))
        .init(|config: Config| async move { Scratch::open(config) })
        .serve()
}
