//! Searches, lists and reads files below one directory, and never outside it.

mod list;
mod read;
mod search;
mod walk;
mod workspace;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use talon_sdk::Plugin;

use crate::workspace::{Config, Workspace};

fn main() -> ExitCode {
    Plugin::new("code-search")
        .description("Searches, lists and reads the files of one directory tree.")
        .tools([search::search(), list::list_files(), read::read_range()])
        .init(|config: Config| async move { Workspace::open(&config.root) })
        .serve()
}
