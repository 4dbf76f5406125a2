//! Runs commands in a scratch directory.

mod run;
mod settings;
mod truncated_output;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use talon_sdk::Plugin;

use crate::settings::{Config, Scratch};

fn main() -> ExitCode {
    Plugin::new("shell")
        .description("Runs shell commands in a scratch directory.")
        // It can only destroy its own scratch directory. Destructive commands such as `rm -rf` still need
        // approval, by pattern.
        .tool(run::run().destructive(false))
        .init(|config: Config| async move { Scratch::open(config) })
        .serve()
}
